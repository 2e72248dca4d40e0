"""Rewards of whole completions."""
from typing import Literal

import jax.numpy as jnp
from jax import Array

from rlx.core import ranges
from rlx.core.method import method


@method(unchanged=True)
def verdict(outcome_B: Array, learn_B: Array) -> Array:
  """The verifier's verdict, as it is.

    r_i = outcome_i

  Source: the verifiable reward of Lambert et al. 2024 (Tulu 3),
  arXiv:2411.15124, without its scale. Differs from the paper: a
  verdict may be fractional, and an unknown one (NaN) gives 0 and is marked by
  learn_B, so that it is part of no baseline.

  Args:
    outcome_B: verdicts in [0, 1], NaN = could not tell.
    learn_B: bool.
  Returns:
    rewards_B, one per completion, 0 where not valid.
  Example:
    >>> outcome.verdict(jnp.array([1., jnp.nan]), jnp.array([True, False]))
    Array([1., 0.], dtype=float32)
  """
  return outcome_B


@method(unchanged=True)
def reward(reward_B: Array, learn_B: Array) -> Array:
  """What the verifier or the reward function returned, as it is.

    r_i = reward_i

  Source: a reward on any scale, such as that of a reward model in Ouyang et al. 2022,
  arXiv:2203.02155. Differs from the paper: an unknown reward (NaN) gives 0 and is marked by
  learn_B, so that it is part of no baseline.

  Args:
    reward_B: any numbers, NaN = could not tell.
    learn_B: bool.
  Returns:
    rewards_B, 0 where learn_B is False.
  Example:
    >>> outcome.reward(jnp.array([2.5, jnp.nan]), jnp.array([True, False]))
    Array([2.5, 0. ], dtype=float32)
  """
  return reward_B


@method
def cascade(outcome_B: Array, scores_B: Array, learn_B: Array, *,
            mode: Literal["addon", "only", "mixed"] = "addon",
            weight: ranges.Number = 1.0) -> Array:
  """The score of a second verifier for completions that the first one rejects.

    addon:  r = v if v > 1/2 else weight s
    only:   r = s                            mixed:  r = weight s + (1 - weight) v

  Source: Xu et al. 2025, arXiv:2505.14625 (TinyV); the add-on form is also the hybrid
  verifier of Huang et al. 2025, arXiv:2505.22203. Differs from the papers: the
  second verifier is asked about every completion, which costs time and changes no
  reward; filters, PRM and metrics keep the first one's verdict.

  Args:
    outcome_B: verdicts of the first; anything where learn_B is False.
    scores_B: of the second, the first in verifier.scores.
    learn_B: bool.
    mode: addon, only or mixed.
    weight: of the second.
  Returns:
    rewards_B, 0 where not valid.
  Raises:
    ValueError: an unknown mode.
  Example:
    >>> outcome.cascade(jnp.array([1., 0.]), jnp.array([0., .5]), jnp.ones(2, bool))
    Array([1. , 0.5], dtype=float32)
  """
  if mode == "addon": return jnp.where(outcome_B > 0.5, outcome_B, weight * scores_B)
  if mode == "only": return scores_B
  return weight * scores_B + (1 - weight) * outcome_B


@method
def stages(outcome_B: Array, scores_BE: Array, learn_B: Array, *,
           weights: ranges.Numbers = (0.1, 0.4, 0.5),
           thresholds: ranges.Numbers = (1.0, 0.0)) -> Array:
  """PRS: every stage counts only if all earlier ones have met their thresholds.

    r = sum_e w_e s_e prod_{j < e} 1[s_j >= threshold_j]    s_E = the verdict

  with s_0, s_1, ... the scores of verifier.scores, in the order of the stages: for example, whether
  all tool calls could be parsed, then how close the answer is, then whether it is right. A policy
  has rewards to learn from before its first right answer. `turns.gate` has the opposite order:
  there the outcome comes first.

  Source: Progressive Reward Shaping, Su et al. 2025, arXiv:2512.07478. Differs from the paper: its
  values of the stages could not be confirmed; the defaults are ours, and weights that add up to
  1 give a right answer the reward 1.

  Args:
    outcome_B: verdicts; anything where learn_B is False.
    scores_BE: likewise.
    learn_B: bool.
    weights: of the scores and of the verdict.
    thresholds: of each of the scores, in units of them.
  Returns:
    rewards_B, 0 where learn_B is False.
  Raises:
    ValueError: a number of weights or thresholds that fits no scores.
  Example:
    >>> scores_BE = jnp.array([[1., 1.], [1., .5], [0., 1.]])
    >>> outcome.stages(jnp.array([1., 0., 1.]), scores_BE, jnp.ones(3, bool))
    Array([1. , 0.3, 0. ], dtype=float32)
  """
  n = scores_BE.shape[1]
  if len(thresholds) != n or len(weights) != n + 1:
    raise ValueError(f"weights={weights!r}, thresholds={thresholds!r}: {n + 1} weights and {n} "
                     f"thresholds, since verifier.scores names {n} verifiers.")
  values_BE = jnp.concatenate([scores_BE, outcome_B[:, None]], axis=1)
  met_BE = jnp.cumprod(scores_BE >= jnp.array(thresholds)[None], axis=1)
  return jnp.matmul(values_BE.at[:, 1:].multiply(met_BE), jnp.array(weights), precision="highest")


@method
def stated(outcome_B: Array, answer_B: Array, learn_B: Array, *, wrong: ranges.Number = -0.5,
           missing: ranges.Number = -1.0) -> Array:
  """A wrong answer costs something, and no answer more.

    r = missing               if no answer is stated
    r = wrong + (1 - wrong) v  otherwise

  Source: RISE, Liu et al. 2025, arXiv:2505.13445: 1, -0.5 and -1. Differs from the paper: a verdict
  may be fractional.

  Args:
    outcome_B: verdicts v in [0, 1]; anything where learn_B is False.
    answer_B: number of the stated answer (eval.answer), -1: none is stated.
    learn_B: bool.
    wrong: the reward of an answer with verdict 0.
    missing: that of a completion without an answer, whatever its verdict.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> outcome.stated(jnp.array([1., 0., 1.]), jnp.array([0, 1, -1]), jnp.ones(3, bool))
    Array([ 1. , -0.5, -1. ], dtype=float32)
  """
  return jnp.where(answer_B < 0, missing, wrong + (1 - wrong) * outcome_B)


@method
def score(scores_BE: Array, learn_B: Array, *, index: ranges.Whole = 0) -> Array:
  """The score of one of the verifiers in verifier.scores, as it is.

    r_i = s_{i, index}

  Source: one of the several rewards of GDPO, arXiv:2601.05242, whose advantages are computed for
  each reward and then added. Differs from the paper: a verifier's score is in [0, 1], that of a
  reward function any number.

  Args:
    scores_BE: anything where learn_B is False.
    learn_B: bool.
    index: of the verifier, from 0.
  Returns:
    rewards_B, 0 where learn_B is False.
  Raises:
    ValueError: there is no such verifier.
  Example:
    >>> outcome.score(jnp.array([[1., .5]]), jnp.array([True]), index=1)
    Array([0.5], dtype=float32)
  """
  if index >= scores_BE.shape[1]:
    raise ValueError(f"index={index}: verifier.scores names {scores_BE.shape[1]} verifiers.")
  return scores_BE[:, index]


@method
def network(scores_BE: Array, learn_B: Array, *,
            weights: ranges.Numbers = ((1.0, 1.0, 0.0, 1.0),)) -> Array:
  """A reward model of named features: a small network of all scores in verifier.scores.

    r = sum_h v_h tanh(sum_e w_he s_e + b_h)

  `losses.reward_model.fit_network` learns the weights from pairs.

  Source: Nath et al. 2024, arXiv:2402.15473. Differs from the paper: as `fit_network`; the features
  are scores of verifiers or of scorers, there those of a language model that is asked.

  Args:
    scores_BE: the features; anything where learn_B is False.
    learn_B: bool.
    weights: of each hidden unit w_h1, ..., w_hE, b_h and v_h.
  Returns:
    rewards_B, 0 where learn_B is False.
  Raises:
    ValueError: a hidden unit that does not have E + 2 numbers, or no hidden unit.
  Example:
    >>> scores_BE = jnp.array([[1., 0.], [1., 5.], [0., 0.]])
    >>> outcome.network(scores_BE, jnp.ones(3, bool), weights=((1., 0., 0., 2.),)).round(2)
    Array([1.52, 1.52, 0.  ], dtype=float32)
  """
  size = scores_BE.shape[1] + 2
  if not weights or any(not isinstance(x, list | tuple) or len(x) != size for x in weights):
    raise ValueError(f"weights={weights!r:.80}: of each hidden unit a list of {size} numbers, as "
                     f"verifier.scores names {size - 2} verifiers: their weights, the constant and "
                     "the weight of the unit.")
  weights_HF = jnp.array(weights, scores_BE.dtype)
  hidden_BH = jnp.tanh(jnp.matmul(scores_BE, weights_HF[:, :-2].T, precision="highest")
                       + weights_HF[None, :, -2])
  return jnp.matmul(hidden_BH, weights_HF[:, -1], precision="highest")


@method
def filled(scores_BE: Array, learn_B: Array, *, index: ranges.Whole = 0, known: ranges.Whole = 1,
           otherwise: ranges.Whole = 2) -> Array:
  """A score where there is one, and another one, such as its prediction, where there is none.

    r = s_index if s_known > 1/2 else s_otherwise

  Source: RM-NLHF, Wang et al. 2026, arXiv:2601.07349: the similarity to the critique of a human,
  and what MetaRM predicts of it where there is none. Differs from the paper: nothing known.

  Args:
    scores_BE: anything where learn_B is False.
    learn_B: bool.
    index, known, otherwise: of the verifiers in verifier.scores, from 0.
  Returns:
    rewards_B, 0 where learn_B is False.
  Raises:
    ValueError: there is no such verifier.
  Example:
    >>> scores_BE = jnp.array([[.2, 1., .6], [0., 0., .6]])
    >>> outcome.filled(scores_BE, jnp.ones(2, bool))
    Array([0.2, 0.6], dtype=float32)
  """
  for key, i in dict(index=index, known=known, otherwise=otherwise).items():
    if i >= (n := scores_BE.shape[1]):
      raise ValueError(f"{key}={i}: below {n}, as verifier.scores names {n}.")
  return jnp.where(scores_BE[:, known] > 0.5, scores_BE[:, index], scores_BE[:, otherwise])


@method
def calibrated(outcome_B: Array, scores_BE: Array, learn_B: Array, *,
               confidence: ranges.Whole = 0, form: ranges.Whole = 1) -> Array:
  """How near a stated confidence is to the verdict (Brier); nothing without a confidence.

    r = f (1 - (c - v)^2)

  Source: Brier 1950; the calibration term of ReFIne (Sun et al. 2025, arXiv:2510.09062) and, less
  a constant, of Damani et al. 2025, arXiv:2507.16806 (RLCR). Differs from the papers: a completion
  that states no confidence gets 0 here, whatever its verdict.

  Args:
    outcome_B: verdicts v in [0, 1]; anything where learn_B is False.
    scores_BE: scores of verifier.scores, among them c and f, such as those of
      verifiers/confidence.py.
    learn_B: bool.
    confidence, form: indices of c, in [0, 1], and of f, 1 where it is stated.
  Returns:
    rewards_B in [0, 1], 0 where not valid.
  Raises:
    ValueError: there is no score with such an index.
  Example:
    >>> outcome.calibrated(jnp.array([1., 0.]), jnp.array([[.5, 1.], [.5, 0.]]), jnp.ones(2, bool))
    Array([0.75, 0.  ], dtype=float32)
  """
  for key, i in dict(confidence=confidence, form=form).items():
    if i >= (n := scores_BE.shape[1]):
      raise ValueError(f"{key}={i}: below {n}, as verifier.scores names {n}; needed are a "
                       "confidence and whether it is stated: ('confidence.stated', "
                       "'confidence.form').")
  return scores_BE[:, form] * (1 - jnp.square(scores_BE[:, confidence] - outcome_B))
