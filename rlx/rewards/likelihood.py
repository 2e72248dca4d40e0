"""Rewards without a verifier: likelihoods of the reference answer or of the completion.

The reference answer a* (M tokens) is scored after the prompt and the sampled
reasoning z, and as a base after the prompt alone; see `likelihood` in
configs/base.py for where the reasoning ends. Papers as options of `reference`:

  RLPR      2506.18254  agg="mean_p", baseline="diff", post="clip01"
  VeriFree  2505.21493  agg="prod_p", use_gate=True
  JEPO      2503.19618  agg="log_mean_exp", with an estimator without a baseline
  log-prob  2602.03979  agg="sum_lp" or "mean_lp"; the comparison of them all
  NOVER     2505.16022  agg="ppl", len_norm="log10", post="rank", use_gate=True;
                        and `efficiency`
  VR-CLI    2503.22828  agg="ppl", baseline="rel_ppl", post="thresholds", and
                        likelihood.model="reference"
  DRO       2506.13351  agg="mean_lp", token_weight="group_std", baseline="diff"

A reward that is the same for all completions of a prompt, as the base is, is
taken off again by estimators that compare within a group: there "diff" matters
through what follows it only.
"""
import math
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method

Aggregate = Literal["sum_lp", "mean_lp", "prod_p", "mean_p", "geo_p", "ppl"]
LengthNorm = Literal["none", "log10"]


@method(unread=dict(base_answer_logps_BM=lambda options: options["baseline"] == "none"),
        cancelled=(("centres", dict(baseline="diff", post="none", use_gate=False),
                    "the reward without its base, which all completions of a prompt share"),))
def reference(answer_logps_BM: Array, answer_mask_BM: Array, learn_PG: Array, lengths_B: Array,
              outcome_B: Array, base_answer_logps_BM: Array | None = None, *,
              agg: Literal[Aggregate, "log_mean_exp"] = "mean_p",
              baseline: Literal["none", "diff", "rel_ppl"] = "none",
              token_weight: Literal["none", "group_std"] = "none", len_norm: LengthNorm = "none",
              post: Literal["none", "clip01", "rank", "thresholds"] = "none",
              thresholds: ranges.Numbers = ((0.05, 0.5), (1.0, 0.9), (2.0, 1.0)),
              use_gate: bool = False) -> Array:
  """How likely the sampled reasoning makes the reference answer.

    l_t = w_t log p(a*_t | x, z, a*_<t) / N(|y|),   p_t = exp l_t

    sum_lp   sum_t l_t              prod_p   exp sum_t l_t
    mean_lp  1/M sum_t l_t          geo_p    exp(1/M sum_t l_t)
    mean_p   1/M sum_t w_t p_t      ppl      -exp(-1/M sum_t l_t), so that more is better
    log_mean_exp   log 1/n sum_j P_j - log 1/(n-1) sum_{j != i} P_j,  P = prod_p

  In mean_p the weights are of the probabilities, not in the exponent. Then the
  base, the same of l_t without z:

    diff     r - r_base
    rel_ppl  100 (PPL_base - PPL) / PPL_base

  and what `post` says.

  Source: the papers in the table above; as a family Kwiatkowski et al. 2026,
  arXiv:2602.03979. Differs from the papers: only the reward of the reasoning's
  tokens; the gradient that VeriFree and JEPO also take of the answer's own
  log-probs is not there. DRO's weight is the std itself: what function of it
  the paper has could not be confirmed. NOVER's |z| is the length of the whole
  completion, its slowly moving proxy model the policy or its start
  (likelihood.model), and ties share the better rank. log_mean_exp is JEPO's
  multi-sample bound with its leave-one-out control variate taken off.

  Args:
    answer_logps_BM: nats; anything where answer_mask_BM is False.
    answer_mask_BM: bool, the answer's tokens.
    learn_PG: bool; other completions get 0 and enter no statistic.
    lengths_B: tokens of the completions, for len_norm.
    outcome_B: verdicts, for use_gate.
    base_answer_logps_BM: of the answer without reasoning, for baseline.
    agg: one of AGGREGATES.
    baseline: none, diff or rel_ppl (which needs agg="ppl").
    token_weight: group_std weighs a token by the std of its log-prob over the
      prompt's completions, scaled to 1 on average over the answer; 1 where
      all tie.
    len_norm: log10 has N = 1 + log10 |y|; none has N = 1. The base has none.
    post: clip01 to [0, 1]; rank, (n - completions that are better) / n within
      the prompt; thresholds, the value of the highest one reached, else 0.
    thresholds: pairs of least reward and value.
    use_gate: only completions with verdict 1, of a format check say, count.
      Others get 0, which is the most that a log-prob or ppl can be: for these
      use it with post="rank" or "thresholds".
  Returns:
    rewards_B, 0 where a completion does not count.
  Raises:
    ValueError: an unknown option, options that exclude each other, or no base.
  Example:
    >>> answer_logps_BM = jnp.log(jnp.array([[.5, 1.], [.25, .25]]))
    >>> mask_BM = jnp.ones((2, 2), bool)
    >>> lengths_B, outcome_B = jnp.array([3, 3]), jnp.array([1., 0.])
    >>> likelihood.reference(answer_logps_BM, mask_BM, jnp.ones((1, 2), bool), lengths_B, outcome_B)
    Array([0.75, 0.25], dtype=float32)
  """
  if baseline == "rel_ppl" and agg != "ppl":
    raise ValueError(f"agg={agg!r}: ppl with baseline='rel_ppl'.")
  if baseline != "none" and agg == "log_mean_exp":
    raise ValueError(f"baseline={baseline!r}: none with agg='log_mean_exp', which has "
                     "the other completions as its base.")
  if baseline != "none" and base_answer_logps_BM is None:
    raise ValueError(f"baseline={baseline!r}: needs base_answer_logps_BM.")
  counts_PG = _counts(answer_mask_BM, learn_PG, outcome_B, use_gate)
  mask_BM = answer_mask_BM & counts_PG.reshape(-1, 1)
  weight_BM = _group_std(answer_logps_BM, mask_BM, counts_PG) if token_weight == "group_std" else 1
  def likelihood(logps_BM):
    return _aggregate(logps_BM, mask_BM, agg, weight_BM).reshape(counts_PG.shape)
  rewards_PG = likelihood(_per_length(answer_logps_BM, lengths_B, len_norm))
  if agg == "log_mean_exp": rewards_PG = _leave_one_out(rewards_PG, counts_PG)
  if baseline == "diff": rewards_PG = rewards_PG - likelihood(base_answer_logps_BM)
  if baseline == "rel_ppl": rewards_PG = 100 * (1 - rewards_PG / likelihood(base_answer_logps_BM))
  if post == "clip01": rewards_PG = jnp.clip(rewards_PG, 0, 1)
  if post == "rank":
    n_P1 = jnp.sum(counts_PG, axis=1, keepdims=True)
    better_PG = jnp.sum(_above(rewards_PG) & counts_PG[:, :, None], axis=1)
    rewards_PG = (n_P1 - better_PG) / jnp.maximum(n_P1, 1)
  if post == "thresholds":
    least, values = zip(*sorted(thresholds))
    reached_PG = jnp.searchsorted(jnp.asarray(least), rewards_PG, side="right")
    rewards_PG = jnp.asarray((0.0, *values))[reached_PG]
  return masked.where_valid(rewards_PG, counts_PG).reshape(-1)


@method
def efficiency(answer_logps_BM: Array, answer_mask_BM: Array, learn_PG: Array, lengths_B: Array,
               outcome_B: Array, *, len_norm: LengthNorm = "log10", use_gate: bool = True) -> Array:
  """NOVER's efficiency reward: the share of completions that are longer and less likely.

    r_i = 1/(n-1) |{j : |y_i| < |y_j| and PPL_i < PPL_j}|

  Source: Liu et al. 2025, arXiv:2505.16022. Differs from the paper: |y| is the
  length of the whole completion, the paper's of its reasoning.

  Args, Returns: as `reference`, whose agg is "ppl" here.
  Example:
    >>> answer_logps_BM, mask_BM = jnp.array([[-1.], [-2.]]), jnp.ones((2, 1), bool)
    >>> lengths_B, outcome_B = jnp.array([4, 8]), jnp.ones(2)
    >>> likelihood.efficiency(answer_logps_BM, mask_BM, jnp.ones((1, 2), bool), lengths_B,
    ...                       outcome_B)
    Array([1., 0.], dtype=float32)
  """
  counts_PG = _counts(answer_mask_BM, learn_PG, outcome_B, use_gate)
  score_B = _aggregate(_per_length(answer_logps_BM, lengths_B, len_norm),
                       answer_mask_BM & counts_PG.reshape(-1)[:, None], "ppl")
  beats_PGG = (_above(score_B.reshape(counts_PG.shape))
               & _above(-lengths_B.reshape(counts_PG.shape)) & counts_PG[:, None, :])
  n_P1 = jnp.sum(counts_PG, axis=1, keepdims=True)
  rewards_PG = jnp.sum(beats_PGG, axis=2) / jnp.maximum(n_P1 - 1, 1)
  return masked.where_valid(rewards_PG, counts_PG).reshape(-1)


@method
def turn_gain(step_answer_logps_BJM: Array, answer_mask_BM: Array, learn_BT: Array, learn_B: Array,
              step_ends_BT: Array, *, agg: Aggregate = "geo_p") -> Array:
  """IGPO: what each turn or step adds to the reference answer's likelihood.

    r_k = p(a* | x, y_<=k) - p(a* | x, y_<k)   on the last token of step k < K

  The last step has none: the outcome belongs there, a reward term of its own.

  Source: Wang et al. 2025, arXiv:2510.14967, p = geo_p; with agg="mean_lp" a
  step's gain in log-prob. Differs from the paper: of the turns, or of the steps
  of one completion, the first likelihood.steps; its z-score over all turns of a
  group is left to the estimator (turns.grpo).

  Args:
    step_answer_logps_BJM: nats, the answer after the first j steps, j = 0
      being the prompt alone; anything where there is no such step.
    answer_mask_BM, learn_BT: bool.
    learn_B: bool; other rows get 0.
    step_ends_BT: bool, last token of each step, also of the last one.
    agg: of `reference`, without log_mean_exp.
  Returns:
    rewards_BT, 0 except on the ends of all steps but the last.
  Example:
    >>> logps_BJM = jnp.log(jnp.array([[[.25], [.5], [1.]]]))
    >>> ends_BT = jnp.array([[False, True, True]])
    >>> likelihood.turn_gain(logps_BJM, jnp.array([[True]]), jnp.ones((1, 3), bool),
    ...                      jnp.array([True]), ends_BT)
    Array([[0.  , 0.25, 0.  ]], dtype=float32)
  """
  b, j, m = step_answer_logps_BJM.shape
  ends_BT = step_ends_BT & learn_BT
  ends_BT = ends_BT & ~masked.last(ends_BT)  # An EOS after the text ends no step.
  step_BT = jnp.cumsum(ends_BT, axis=1)
  ends_BT = ends_BT & (step_BT < j) & learn_B[:, None]
  # A column's answer counts where the row has that step: anything may be elsewhere.
  has_BJ = jnp.arange(j)[None, :] <= jnp.sum(ends_BT, axis=1, keepdims=True)
  has_BJM = (has_BJ & learn_B[:, None])[:, :, None] & answer_mask_BM[:, None, :]
  score_BJ = _aggregate(step_answer_logps_BJM.reshape(b * j, m),
                        has_BJM.reshape(b * j, m), agg).reshape(b, j)
  gain_BJ = jnp.diff(score_BJ, axis=1, prepend=score_BJ[:, :1])
  return masked.where_valid(jnp.take_along_axis(gain_BJ, jnp.minimum(step_BT, j - 1), axis=1),
                            ends_BT)


@method
def self_aligned(old_logps_BT: Array, noprompt_logps_BT: Array, learn_BT: Array,
                 learn_B: Array) -> Array:
  """SAR: how much more likely the prompt makes the completion.

    r = max(1 - PPL(y | x) / PPL(y), -1)

  Source: Han et al. 2025, arXiv:2509.05489; a term in addition to the verdict, with
  coef 0.2. Differs from the paper: PPL(y) starts from the BOS, or the EOS where
  a tokenizer has none; both are at the sampling temperature.

  Args:
    old_logps_BT, noprompt_logps_BT: nats, of the completion with and without
      its prompt; anything on padding.
    learn_BT: bool.
    learn_B: bool; other rows get 0.
  Returns:
    rewards_B in [-1, 1).
  Example:
    >>> old_logps_BT, noprompt_logps_BT = jnp.zeros((1, 2)), jnp.log(jnp.full((1, 2), .5))
    >>> likelihood.self_aligned(old_logps_BT, noprompt_logps_BT, jnp.ones((1, 2), bool),
    ...                         jnp.array([True]))
    Array([0.5], dtype=float32)
  """
  log_ratio_B = masked.mean(noprompt_logps_BT - old_logps_BT, learn_BT, axis=1)
  # 1 - e^x >= -1 as long as x <= log 2; clipped before exp, which stays finite.
  return 1 - jnp.exp(jnp.minimum(log_ratio_B, math.log(2)))


@method
def answer_confidence(old_logps_BT: Array, answer_span_BT: Array, learn_B: Array, *,
                      agg: Aggregate = "mean_p") -> Array:
  """CRew: how sure the policy is of the answer that it gave itself.

    r = mean of pi(y_t | x, y_<t) over the tokens of the answer in y

  Source: Du et al. 2025, arXiv:2510.13501, section 3.1 (agg="mean_p"). Differs from
  the paper: a completion without an answer gets 0.

  Args:
    old_logps_BT: nats, at the sampling temperature; anything off the answer.
    answer_span_BT: bool, the tokens after likelihood.separator.
    learn_B: bool; other rows get 0.
    agg: of `reference`, without log_mean_exp.
  Returns:
    rewards_B.
  Example:
    >>> old_logps_BT, span_BT = jnp.log(jnp.array([[.1, .5, 1.]])), jnp.array([[False, True, True]])
    >>> likelihood.answer_confidence(old_logps_BT, span_BT, jnp.array([True]))
    Array([0.75], dtype=float32)
  """
  counts_B = learn_B & jnp.any(answer_span_BT, axis=1)
  return masked.where_valid(_aggregate(old_logps_BT, answer_span_BT & counts_B[:, None], agg),
                            counts_B)


@method
def last_token(self_logps_B: Array, learn_B: Array, *, c_ref: ranges.Number,
               beta_v: ranges.Positive = 0.1, use_clip: bool = True) -> Array:
  """LaSeR's self-reward: the log-prob of an unused token after the completion.

    r = beta_v (log pi(z_c | x, y) - c_ref),   in [0, 1] with use_clip

  Source: Yang et al. 2025, arXiv:2510.14943. Differs from the paper: the reward by
  itself. The regression on the verdict that gives it a meaning is
  losses.auxiliary.last_token, the mix of two advantages advantages.group.self_rewarded.

  Args:
    self_logps_B: log pi(likelihood.token | x, y), nats.
    learn_B: bool; other rows get 0.
    c_ref: what a model before training says of that token, about -23 to -25.
    beta_v: scale of the self-reward.
  Returns:
    rewards_B.
  Example:
    >>> likelihood.last_token(jnp.array([-20.]), jnp.array([True]), c_ref=-21., beta_v=.5)
    Array([0.5], dtype=float32)
  """
  rewards_B = beta_v * (self_logps_B - c_ref)
  return jnp.clip(rewards_B, 0, 1) if use_clip else rewards_B


def _counts(answer_mask_BM, learn_PG, outcome_B, use_gate):
  """Completions that count: valid, with an answer to score, and a verdict of 1 if gated."""
  counts_B = learn_PG.reshape(-1) & jnp.any(answer_mask_BM, axis=1)
  if use_gate: counts_B = counts_B & (outcome_B == 1)
  return counts_B.reshape(learn_PG.shape)


def _per_length(logps_BM, lengths_B, len_norm):
  if len_norm == "none": return logps_BM
  digits_B = jnp.log10(jnp.maximum(lengths_B, 1).astype(logps_BM.dtype))
  return logps_BM / (1 + digits_B)[:, None]


def _aggregate(logps_BM, mask_BM, agg, weight_BM=1):
  """One number per row; of log_mean_exp the sum that `_leave_one_out` takes."""
  logps_BM = masked.where_valid(logps_BM, mask_BM)
  if agg == "mean_p": return masked.mean(weight_BM * jnp.exp(logps_BM), mask_BM, axis=1)
  total_B = jnp.sum(weight_BM * logps_BM, axis=1)
  if agg in ("sum_lp", "log_mean_exp"): return total_B
  if agg == "prod_p": return jnp.exp(total_B)
  mean_B = total_B / jnp.maximum(jnp.sum(mask_BM, axis=1), 1)
  if agg == "mean_lp": return mean_B
  if agg == "geo_p": return jnp.exp(mean_B)
  return -jnp.exp(jnp.minimum(-mean_B, 80.0))  # Finite in float32.


def _group_std(logps_BM, mask_BM, counts_PG):
  """Std of each answer token's log-prob over a prompt's completions, 1 on average."""
  mask_PGM = mask_BM.reshape(*counts_PG.shape, -1)
  logps_PGM = logps_BM.reshape(mask_PGM.shape)
  std_P1M = masked.root(masked.var(logps_PGM, mask_PGM, axis=1, keepdims=True))
  mean_P11 = masked.mean(std_P1M, jnp.any(mask_PGM, axis=1, keepdims=True), axis=2, keepdims=True)
  weight_P1M = jnp.where(mean_P11 > 0, std_P1M / jnp.where(mean_P11 > 0, mean_P11, 1), 1)
  return jnp.broadcast_to(weight_P1M, mask_PGM.shape).reshape(mask_BM.shape)


def _leave_one_out(logps_PG, counts_PG):
  """Log of the group's mean probability minus the log of the others' mean; 0 if alone."""
  def log_mean(of_PGG):
    n_PG1 = jnp.sum(of_PGG, axis=2, keepdims=True)
    # Nobody to average: zeros, for -inf would have a NaN gradient.
    x_PGG = jnp.where(of_PGG, logps_PG[:, None, :], jnp.where(n_PG1 > 0, -jnp.inf, 0))
    return jax.nn.logsumexp(x_PGG, axis=2) - jnp.log(jnp.maximum(n_PG1, 1))[:, :, 0]
  group = counts_PG.shape[1]
  all_PGG = jnp.broadcast_to(counts_PG[:, None, :], (*counts_PG.shape, group))
  others_PGG = all_PGG & ~jnp.eye(group, dtype=bool)[None]
  has_rival_PG = counts_PG & jnp.any(others_PGG, axis=2)
  return masked.where_valid(log_mean(all_PGG) - log_mean(others_PGG), has_rival_PG)


def _above(x_PG):
  """[p, i, j]: is i above j?"""
  return x_PG[:, :, None] > x_PG[:, None, :]
