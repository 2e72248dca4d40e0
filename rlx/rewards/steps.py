"""Rewards from the scores of reasoning steps.

`step_scores_BT` has the score of a step on its last token, where `step_ends_BT`
is True; a step whose score is unknown (NaN) is no step. What is returned is 0
on padding and on rows that are not valid. Where a paper adds the outcome, a
config has it as a reward term of its own and the paper's weights as `coef`.
"""
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method
from rlx.rewards import _segments


@method
def refine(step_scores_BT: Array, step_ends_BT: Array, learn_BT: Array, learn_B: Array, *,
           kind: Literal["raw", "softmin", "clip", "delta", "clip_delta", "advantage",
                         "lookahead"] = "raw", signed: bool = False,
           temperature: Annotated[float, ranges.Range(1e-6, 1e6)] = 0.1,
           eta: ranges.Number = 0.0, start: ranges.Number = 0.0, gamma: ranges.Share = 0.7,
           eps: ranges.NotNegative = 1e-5, window: ranges.Whole = 4) -> Array:
  """The reward of each step, on its last token; more steps do not give more reward.

    raw         r_k = s_k
    softmin     r_k = s_k softmax_k(-s_k / temperature);  sum_k r_k ~ min_k s_k
    clip        r_k = min(s_k - eta, 0)
    delta       r_k = s_k - s_{k+1}, r_K = s_K;  the return from step k is s_k
    clip_delta  delta of clip
    advantage   r_k = s_k - s_{k-1}, s_0 = start;  s is the value after a step
    lookahead   r_k = d_k of advantage if |d_k| >= eps, else gamma^(j-k) d_j for
                the first such j <= k + window, else 0

  Source: softmin is PURE, Cheng et al. 2025, arXiv:2504.15275, with signed=True
  and a return without discount; clip and delta Gao et al. 2024,
  arXiv:2410.15115; advantage PAV, Setlur et al. 2024, arXiv:2410.08146, where s
  is the success rate of another policy; lookahead VSRM, Yue et al. 2025,
  arXiv:2508.10293.
  Differs from the papers: PURE's softmin scores the step that ends with EOS
  there, here the step ends with its text. How Gao et al. treat the last step
  and choose eta is assumed (eta is an option). VSRM puts r_k on the first token
  of step k and gives its first step nothing; the defaults of gamma, eps and
  window are those of its code.

  Args:
    step_scores_BT: s, one per step; anything on other tokens.
    step_ends_BT: bool.
    learn_BT: bool.
    learn_B: bool.
    kind: one of the above.
    signed: s <- 2 s - 1 first: P(good) - P(bad) from a probability.
    temperature: of softmin, in units of s.
    eta: threshold of clip, in units of s.
    start: value before the first step, of advantage and lookahead.
    gamma: per step of lookahead.
    eps: least change that counts, of lookahead.
    window: steps that are looked ahead at most.
  Returns:
    rewards_BT.
  Raises:
    ValueError: unknown kind.
  Example:
    >>> step_scores_BT = jnp.array([[0., .25, 0., 1.]])
    >>> ends_BT, learn_BT = jnp.array([[False, True, False, True]]), jnp.ones((1, 4), bool)
    >>> steps.refine(step_scores_BT, ends_BT, learn_BT, jnp.array([True]), kind="advantage")
    Array([[0.  , 0.25, 0.  , 0.75]], dtype=float32)
  """
  scores_BT, ends_BT = _segments.select_known(step_scores_BT, step_ends_BT, learn_BT)
  if signed: scores_BT = masked.where_valid(2 * scores_BT - 1, ends_BT)
  if kind == "softmin":
    low = jnp.finfo(scores_BT.dtype).min
    return scores_BT * jax.nn.softmax(jnp.where(ends_BT, -scores_BT / temperature, low), axis=1)
  if kind.startswith("clip"):
    scores_BT = masked.where_valid(jnp.minimum(scores_BT - eta, 0), ends_BT)
  if kind.endswith("delta"):
    return scores_BT - _segments.following(scores_BT, ends_BT)
  if kind not in ("advantage", "lookahead"): return scores_BT
  scores_BT = masked.where_valid(scores_BT - start, ends_BT)
  gain_BT = scores_BT - _segments.preceding(scores_BT, ends_BT)
  if kind == "advantage": return gain_BT
  moves_BT = ends_BT & (jnp.abs(gain_BT) >= eps)
  flat_BT = ends_BT & ~moves_BT
  decay_BT = jnp.where(flat_BT, gamma, jnp.where(moves_BT, 0.0, 1.0))
  ahead_BT = masked.accumulate(masked.where_valid(gain_BT, moves_BT), decay_BT, reverse=True)
  distance_BT = masked.accumulate(flat_BT.astype(gain_BT.dtype), ~moves_BT, reverse=True)
  return masked.where_valid(ahead_BT, ends_BT & (distance_BT <= window))


@method
def given(step_rewards_BTZ: Array, learn_BT: Array, *, index: ranges.Whole = 0) -> Array:
  """The rewards that one of the functions in verifier.step_rewards gives to steps, as they are.

    r_t = reward of the step that ends with token t, 0 if no step ends there

  Source: rewards of tokens or steps as in PRIME, Cui et al. 2025, arXiv:2502.01456, equation 5.
  Differs from the paper: a function of the text gives them, on any scale.

  Args:
    step_rewards_BTZ: anything where learn_BT is False.
    learn_BT: bool.
    index: of the function, from 0.
  Returns:
    rewards_BT.
  Raises:
    ValueError: there is no such function.
  Example:
    >>> step_rewards_BTZ = jnp.array([[[0., 0.], [.5, 2.]]])
    >>> steps.given(step_rewards_BTZ, jnp.ones((1, 2), bool), index=1)
    Array([[0., 2.]], dtype=float32)
  """
  if index >= step_rewards_BTZ.shape[2]:
    raise ValueError(f"index={index}: verifier.step_rewards names {step_rewards_BTZ.shape[2]} "
                     "functions.")
  return step_rewards_BTZ[:, :, index]


@method
def spans(span_scores_BT: Array, action_BT: Array, learn_BT: Array) -> Array:
  """The sign of the spans that a critic marks in a completion, on each of their tokens.

    r_t = 2 s_t - 1:  1 in a good span, -1 in a bad one, 0 outside of them and in spans of both

  Source: DRLC, Cao et al. 2024, arXiv:2401.07382, whose reward is alpha_1 r_env at the end plus
  alpha_2 r_t; a config has them as two terms. Differs from the paper: nothing known.

  Args:
    span_scores_BT: s, 1/2 outside of spans; anything where learn_BT is False.
    action_BT: bool, tokens that the policy drew.
    learn_BT: bool.
  Returns:
    rewards_BT.
  Example:
    >>> span_scores_BT, ones_BT = jnp.array([[1., .5, 0.]]), jnp.ones((1, 3), bool)
    >>> steps.spans(span_scores_BT, ones_BT, ones_BT)
    Array([[ 1.,  0., -1.]], dtype=float32)
  """
  return masked.where_valid(2 * span_scores_BT - 1, action_BT & learn_BT)


@method
def mix(step_scores_BT: Array, step_ends_BT: Array, learn_BT: Array, outcome_B: Array,
        learn_B: Array, *, kind: Literal["gate", "renorm"] = "gate", theta: ranges.Number = 0.5,
        mu: ranges.Number = 1.0) -> Array:
  """The reward of each step, changed by the outcome o of its completion.

    gate    r_k = s_k if o >= theta, else 0
    renorm  r_k = s_k + o - mu before the last step, which is the outcome's alone: 0

  With scores and verdicts in [0, 1] and mu=1 renorm leaves a failed completion no
  positive step and a solved one no negative step.

  Source: gate is G-RA, Sun et al. 2025, arXiv:2508.10548; renorm is ReNorm of
  Principle Process Reward, Xu et al. 2025, arXiv:2509.25598, in the form of its
  released code (Zhuohao-Li/ppr, verl/trainer/main_ppo.py), where mu is renorm_beta.
  Differs from the papers: in G-RA a reward counts if all those of a higher priority
  meet their thresholds, here the priorities are two. ReNorm's code gives a step whose
  score is unknown o - mu, here it is no step.

  Args:
    step_scores_BT, step_ends_BT, learn_BT, learn_B: as `refine`.
    outcome_B: verdicts; anything where learn_B is False.
    kind: one of the above.
    theta: least outcome that opens the gate.
    mu: centre of renorm.
  Returns:
    rewards_BT.
  Raises:
    ValueError: unknown kind.
  Example:
    >>> step_scores_BT = jnp.array([[0., .25, 0., 1.]])
    >>> ends_BT, learn_BT = jnp.array([[False, True, False, True]]), jnp.ones((1, 4), bool)
    >>> steps.mix(step_scores_BT, ends_BT, learn_BT, jnp.array([1.]), jnp.array([True]),
    ...           kind="renorm")
    Array([[0.  , 0.25, 0.  , 0.  ]], dtype=float32)
  """
  scores_BT, ends_BT = _segments.select_known(step_scores_BT, step_ends_BT, learn_BT)
  outcome_B1 = outcome_B[:, None]
  if kind == "gate": return masked.where_valid(scores_BT, outcome_B1 >= theta)
  before_BT = ends_BT & ~masked.last(step_ends_BT & learn_BT)
  return masked.where_valid(scores_BT + outcome_B1 - mu, before_BT)


@method
def completion(step_scores_BT: Array, step_ends_BT: Array, learn_BT: Array, learn_B: Array, *,
               kind: str = "min") -> Array:
  """One reward per completion: an aggregate of the scores of its steps.

    prod = prod_k s_k    mean = 1/K sum_k s_k    geo = exp(1/K sum_k log s_k)
    mean_odds = mean of s_k / (1 - s_k)    mean_logit = mean of its logarithm
    min, max, sum and last as they say

  Source: Pan et al. 2023, Let's Reinforce Step by Step, arXiv:2311.05821 (prod,
  min, mean, max as the reward of PPO); the others are of the evaluation of
  RewardMATH, Kim et al. 2024, arXiv:2410.01729. kind="mean" with coef 0.75 and
  an outcome with coef 0.25 is the reward of ReasonFlux-PRM, Zou et al. 2025,
  arXiv:2506.18896.
  Differs from the papers: geo and the odds see scores clipped to [1e-6, 1 - 1e-6],
  so that the verdicts of an exact checker stay finite. ReasonFlux-PRM has a score
  of the trajectory too, and its code reads one score per completion.

  Args:
    step_scores_BT, step_ends_BT, learn_BT, learn_B: as `refine`.
    kind: a name in `masked.AGGREGATES`.
  Returns:
    rewards_B, 0 for a completion without steps.
  Raises:
    ValueError: unknown kind.
  Example:
    >>> step_scores_BT = jnp.array([[0., .25, 0., 1.]])
    >>> ends_BT, learn_BT = jnp.array([[False, True, False, True]]), jnp.ones((1, 4), bool)
    >>> steps.completion(step_scores_BT, ends_BT, learn_BT, jnp.array([True]), kind="mean")
    Array([0.625], dtype=float32)
  """
  scores_BT, ends_BT = _segments.select_known(step_scores_BT, step_ends_BT, learn_BT)
  return masked.aggregate(scores_BT, ends_BT, kind)


@method
def wrong_step_penalty(step_scores_BT: Array, step_ends_BT: Array, learn_BT: Array,
                       outcome_B: Array, learn_B: Array, *, outcome: ranges.Number = 2.0,
                       penalty: ranges.Number = 1.0, threshold: ranges.Number = 0.5) -> Array:
  """CAPO: every token gets the verdict, minus a penalty in wrong steps.

    r_t = outcome o - penalty 1[the step of token t has s < threshold]

  advantages.process.grpo_tokens compares it with the prompt's other tokens.

  Source: Xie et al. 2025, arXiv:2508.02298, eq. 2, where the factors are W_whole and
  W_process. Differs from the paper: the steps are judged by scores instead of votes
  of a critic.

  Args:
    step_scores_BT, step_ends_BT, learn_BT, learn_B: as `refine`.
    outcome_B: verdicts; anything where learn_B is False.
    threshold: scores below it are wrong; unknown ones are not.
  Returns:
    rewards_BT.
  Example:
    >>> step_scores_BT = jnp.array([[0., .25, 0., 1.]])
    >>> ends_BT, learn_BT = jnp.array([[False, True, False, True]]), jnp.ones((1, 4), bool)
    >>> steps.wrong_step_penalty(step_scores_BT, ends_BT, learn_BT, jnp.array([1.]),
    ...                          jnp.array([True]))
    Array([[1., 1., 2., 2.]], dtype=float32)
  """
  scores_BT, known_BT = _segments.select_known(step_scores_BT, step_ends_BT, learn_BT)
  wrong_BT = (known_BT & (scores_BT < threshold)).astype(scores_BT.dtype)
  # An unknown step ends a segment too: its tokens are not those of the next.
  of_step_BT = masked.accumulate(wrong_BT, ~(step_ends_BT & learn_BT), reverse=True)
  return outcome * outcome_B[:, None] - penalty * of_step_BT


@method
def thoughts(step_scores_BT: Array, step_ends_BT: Array, learn_BT: Array, outcome_PG: Array,
             learn_PG: Array, *, right: ranges.Number = 1.0, wrong: ranges.Number = 1.0,
             threshold: ranges.Number = 0.5, adaptive: bool = True) -> Array:
  """One reward for each thought: a run of consecutive steps that are all right, or all wrong.

    r_m = right        if the steps of thought m have s >= threshold
    r_m = - wrong p    if they do not;  p = mean outcome of the prompt's completions, or 1

  on the last token of the thought. Cutting a thought into more steps does not change its reward.
  While the policy solves a prompt seldom, wrong thoughts cost little, so that it may try; where it
  solves it often, they cost as much as right ones earn.

  Source: TP-GRPO, 2025, arXiv:2507.23317. Differs from the paper: we know its abstract alone, which
  has thoughts and a reward that depends on the present ability; that p scales the cost of wrong
  thoughts, and the numbers, are our choice.

  Args:
    step_scores_BT, step_ends_BT, learn_BT: as `refine`.
    outcome_PG: verdicts; anything where learn_PG is False.
    learn_PG: bool.
    threshold: scores below it are wrong; unknown steps belong to the thought around them.
    adaptive: False: p is 1.
  Returns:
    rewards_BT.
  Example:
    >>> step_scores_BT, ones_BT = jnp.array([[0., .25, 1., 1.]]), jnp.ones((1, 4), bool)
    >>> steps.thoughts(step_scores_BT, ones_BT, ones_BT, jnp.array([[.5]]), jnp.array([[True]]))
    Array([[ 0. , -0.5,  0. ,  1. ]], dtype=float32)
  """
  scores_BT, known_BT = _segments.select_known(step_scores_BT, step_ends_BT, learn_BT)
  side_BT = masked.where_valid(jnp.where(scores_BT >= threshold, 1.0, -1.0), known_BT)
  ends_BT = known_BT & (_segments.following(side_BT, known_BT) != side_BT)
  cost_PG = jnp.ones_like(outcome_PG) * wrong
  if adaptive: cost_PG = cost_PG * masked.mean(outcome_PG, learn_PG, axis=1, keepdims=True)
  return masked.where_valid(jnp.where(side_BT > 0, right, -cost_PG.reshape(-1, 1)), ends_BT)


@method
def flaw_penalty(step_scores_BT: Array, step_ends_BT: Array, learn_BT: Array, outcome_B: Array,
                 learn_B: Array, *, lam: ranges.Number = 1.0,
                 threshold: ranges.Number = 0.5) -> Array:
  """FAPO: a right answer reached through a wrong step is worth less.

    r = 1          if o > 1/2 and all s_k >= threshold
    r = 1 - lam    if o > 1/2 and some s_k < threshold
    r = -1         otherwise

  Source: Ding et al. 2025, arXiv:2510.22543. Differs from the paper: a step's
  score finds the flaw, there a generative reward model does.

  Args:
    step_scores_BT, step_ends_BT, learn_BT, learn_B: as `refine`.
    outcome_B: verdicts, NaN where not valid.
    lam: what a flaw costs; 1 makes a flawed answer worth 0.
    threshold: scores below it are flaws; unknown ones are not.
  Returns:
    rewards_B.
  Example:
    >>> step_scores_BT = jnp.array([[0., .25, 0., 1.]])
    >>> ends_BT, learn_BT = jnp.array([[False, True, False, True]]), jnp.ones((1, 4), bool)
    >>> steps.flaw_penalty(step_scores_BT, ends_BT, learn_BT, jnp.array([1.]), jnp.array([True]),
    ...                    lam=.5)
    Array([0.5], dtype=float32)
  """
  scores_BT, ends_BT = _segments.select_known(step_scores_BT, step_ends_BT, learn_BT)
  is_flawed_B = jnp.any(ends_BT & (scores_BT < threshold), axis=1)
  right_B = 1 - lam * is_flawed_B.astype(scores_BT.dtype)
  return jnp.where(outcome_B > 0.5, right_B, -1)


@method
def redistribute(prefix_scores_BT: Array, step_ends_BT: Array, learn_BT: Array, learn_B: Array, *,
                 share: ranges.Number = 1.0, start: ranges.Number = 0.0) -> Array:
  """RED: the score of a completion, distributed over its steps by the changes that they cause.

    r_k = beta (R_k - R_{k-1}) + (1 - beta) R_K 1[k = K]     R_0 = start

  with R_k the score of the completion up to its step k, by a scorer that does not learn: the
  rewards add up to R_K - beta start, the score of the whole. With rollouts.step_separator=''
  every token is a step.

  Source: Li et al. 2024, arXiv:2411.08302. Differs from the paper: R is the head of a reward
  model at every token there, and here the first verifier in verifier.scores, asked about every
  prefix. The paper's beta_c is beta; its default is not known, nor is R_0.

  Args:
    prefix_scores_BT: R, on the last token of each step; anything on other tokens. NaN: unknown,
      no step.
    step_ends_BT: bool.
    learn_BT: bool.
    learn_B: bool.
    share: beta, the share that is redistributed.
    start: the score before the first step.
  Returns:
    rewards_BT.
  Example:
    >>> steps.redistribute(jnp.array([[.25, .75]]), jnp.ones((1, 2), bool),
    ...                    jnp.ones((1, 2), bool), jnp.array([True]))
    Array([[0.25, 0.5 ]], dtype=float32)
  """
  scores_BT, ends_BT = _segments.select_known(prefix_scores_BT, step_ends_BT, learn_BT)
  above_BT = masked.where_valid(scores_BT - start, ends_BT)
  gain_BT = above_BT - _segments.preceding(above_BT, ends_BT)
  final_BT = masked.where_valid(scores_BT, masked.last(ends_BT))
  return share * gain_BT + (1 - share) * final_BT
