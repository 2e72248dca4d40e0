"""Rewards of an implicit PRM: log-ratios of a language model to its reference.

Free Process Rewards without Process Labels, Yuan et al. 2024, arXiv:2412.01981.
PRIME, Cui et al. 2025, arXiv:2502.01456.
"""
from typing import Literal

import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method
from rlx.rewards import _segments


@method
def process(prm_logps_BT: Array, prm_ref_logps_BT: Array, learn_BT: Array, learn_B: Array,
            prm_beta: Array | float, step_ends_BT: Array | None = None,
            outcome_B: Array | None = None, turn_BT: Array | None = None, *,
            granularity: Literal["token", "step", "turn", "completion"] = "token",
            include_last: bool = True, scale_by_beta: bool = True,
            norm: Literal["max_return", "none"] = "max_return", floor: ranges.NotNegative = 0.0,
            norm_shards: ranges.Count = 1, lam: ranges.Share = 0.0,
            use_outcome: bool = False) -> tuple[Array, dict[str, Array]]:
  """The implicit process reward of every token, step, turn or completion.

    r_t = beta log [ pi_phi(y_t | x, y_<t) / pi_ref(y_t | x, y_<t) ]

  summed over the tokens of a step, turn or completion (the episode, if it has several turns)
  and placed on its last one; then, with norm="max_return",

    r <- r / (max(max_{i,t} |sum_{s >= t} r_s^i|, floor) + 1e-6)

  Source: Yuan et al. 2024, arXiv:2412.01981; the scaling is
  batch_norm (prime_norm) of the released PRIME code, arXiv:2502.01456.
  Differs from the paper: the released trainer gives log-ratios without beta
  (scale_by_beta=False; the two agree under max_return), and takes the maximum
  per data-parallel rank (norm_shards=ranks). verl's recipe leaves out the last
  token (include_last=False) and has lam and use_outcome, which no paper has.

  Args:
    prm_logps_BT, prm_ref_logps_BT: nats, of whole distributions at temperature 1, whatever the
      sampler kept (rollouts.decoding); anything on padding and on tokens that were read.
    learn_BT: bool.
    learn_B: bool; other rows get 0 and do not enter the maximum.
    prm_beta: beta, the one of the PRM's loss.
    step_ends_BT: bool, for granularity="step"; the last valid token always
      ends a step.
    outcome_B: verdicts, for use_outcome.
    turn_BT: number of the turn of each token, for granularity="turn"; anything where
      learn_BT is False.
    granularity: token, step, turn or completion.
    include_last: whether the last token's (EOS) reward counts.
    scale_by_beta: False gives plain log-ratios.
    norm: max_return or none.
    floor: least maximum of the normaliser, see `_segments.denominator`.
    norm_shards: row blocks with a maximum of their own.
    lam: r_t <- sum_{s >= t} lam^(s - t) r_s before the steps are summed; tokens that were
      read are not counted in s - t.
    use_outcome: the last token's reward becomes outcome - sum of the others,
      so that a completion's rewards add up to its verdict (before lam).
  Returns:
    rewards_BT, 0 on padding and on rows that are not valid.
    {"normaliser": what max_return divided by, the mean over blocks}.
  Raises:
    ValueError: an unknown granularity or norm, or an array that is needed.
  Example:
    >>> prm_BT, ref_BT = jnp.array([[-1., -1.]]), jnp.array([[-2., -3.]])
    >>> implicit.process(prm_BT, ref_BT, jnp.ones((1, 2), bool), jnp.array([True]), .5,
    ...                  norm="none")[0]
    Array([[0.5, 1. ]], dtype=float32)
  """
  ends_BT = _segments.ends(learn_BT, granularity, step_ends_BT, turn_BT)
  last_BT = masked.last(learn_BT)
  rewards_BT = prm_logps_BT - prm_ref_logps_BT
  if scale_by_beta: rewards_BT = prm_beta * rewards_BT
  if use_outcome:
    if outcome_B is None: raise ValueError("use_outcome=True needs outcome_B.")
    others_B = masked.total(rewards_BT, ~last_BT, axis=1)
    rewards_BT = jnp.where(last_BT, (outcome_B - others_B)[:, None], rewards_BT)
  if lam:
    decay_BT = jnp.where(learn_BT, jnp.asarray(lam, rewards_BT.dtype), 1)
    rewards_BT = masked.where_valid(masked.accumulate(rewards_BT, decay_BT, reverse=True), learn_BT)
  if not include_last: rewards_BT = masked.where_valid(rewards_BT, ~last_BT)
  rewards_BT = _segments.sums(rewards_BT, ends_BT)
  metrics = {}
  if norm == "max_return":
    scale = _segments.denominator(rewards_BT, floor=floor, shards=norm_shards)
    rewards_BT = rewards_BT / jnp.repeat(scale, rewards_BT.shape[0] // norm_shards)[:, None]
    metrics["normaliser"] = jnp.mean(scale)
  return rewards_BT, metrics


@method
def teacher(teacher_logps_BT: Array, old_logps_BT: Array, learn_BT: Array,
            learn_B: Array) -> Array:
  """On-policy distillation: how much likelier the teacher finds a token than the policy does.

    r_t = log pi_teacher(y_t | x, y_<t) - log pi_old(y_t | x, y_<t)

  Over tokens drawn from the policy its mean is minus the reverse KL of their distribution, so that
  with each token's own reward as its advantage (process.reinforce, gamma=0) the policy gradient is
  that of the reverse KL of the next token. `distribution.distil` has that gradient without noise.

  Source: the sampled form of on-policy distillation, Qwen3 Technical Report, 2025,
  arXiv:2505.09388; with the rewards to go it is the gradient of MiniLLM, Gu et al. 2023,
  arXiv:2306.08543, without its teacher-mixed sampling and length normalisation. Differs from the
  report: it states no formula beyond minimising the KL divergence from the teacher's logits.

  Args:
    teacher_logps_BT, old_logps_BT: nats, at the sampling temperature; anything on padding.
    learn_BT, learn_B: bool.
  Returns:
    rewards_BT, 0 on padding.
  Example:
    >>> implicit.teacher(jnp.array([[-1., -3.]]), jnp.array([[-2., -2.]]), jnp.ones((1, 2), bool),
    ...                  jnp.array([True]))
    Array([[ 1., -1.]], dtype=float32)
  """
  return teacher_logps_BT - old_logps_BT


@method
def hinted(hinted_logps_BT: Array, old_logps_BT: Array, learn_BT: Array, learn_B: Array) -> Array:
  """Self-distillation: how much likelier the policy finds a token where it is told the answer.

    r_t = log pi_old(y_t | x, hint(a), y_<t) - log pi_old(y_t | x, y_<t)

  `teacher` with a teacher that costs no other model: the policy before the update, whose prompt has
  teacher.hint with the reference answer a. It learns to do without the hint what it does with it.

  Source: on-policy self-distillation with a privileged context, Zhao et al. 2026, arXiv:2601.18734,
  in the sampled form of `teacher`. Differs from the paper: the teacher moves with the policy; the
  hint is the reference answer, where the data have no solution.

  Args:
    hinted_logps_BT, old_logps_BT: nats, at the sampling temperature; anything on padding.
    learn_BT, learn_B: bool.
  Returns:
    rewards_BT, 0 on padding.
  Example:
    >>> implicit.hinted(jnp.array([[-1., -3.]]), jnp.array([[-2., -2.]]), jnp.ones((1, 2), bool),
    ...                 jnp.array([True]))
    Array([[ 1., -1.]], dtype=float32)
  """
  return hinted_logps_BT - old_logps_BT


@method
def own(old_logps_BT: Array, ref_logps_BT: Array, learn_BT: Array, learn_B: Array, *,
        beta: ranges.Positive = 0.05) -> Array:
  """SPRO's process reward of every token: the policy's own log-ratio to its reference.

    r_t = beta log [ pi_old(y_t | x, y_<t) / pi_ref(y_t | x, y_<t) ]

  The policy takes the place of the PRM: no model is trained but the policy.

  Source: Fei et al. 2025, arXiv:2507.01551, eq. 6 and 11, where sums of it from the first token on
  are the cumulative process reward. Differs from the paper: its value of beta is not known. Only
  descriptions of the equations were found, not the paper's text or code.

  Args:
    old_logps_BT, ref_logps_BT: nats, at the sampling temperature; anything on padding.
    learn_BT, learn_B: bool.
    beta: scale.
  Returns:
    rewards_BT, 0 on padding.
  Example:
    >>> implicit.own(jnp.array([[-1., -1.]]), jnp.array([[-2., -3.]]), jnp.ones((1, 2), bool),
    ...              jnp.array([True]), beta=.5)
    Array([[0.5, 1. ]], dtype=float32)
  """
  return beta * (old_logps_BT - ref_logps_BT)
