"""Rewards of whole completions."""
import jax.numpy as jnp

from rlx.core import axes
from rlx.core import ranges


def verdict(outcome_B, learn_B):
  """The verifier's verdict, as it is.

    r_i = outcome_i

  Source: the verifiable reward of Lambert et al. 2024 (Tulu 3),
  arXiv:2411.15124, without its scale. Differs from the paper: a
  verdict may be fractional, and an unknown one (NaN) gives 0 and is marked by
  learn_B, so that it is nobody's baseline.

  Args:
    outcome_B: verdicts in [0, 1], NaN = could not tell.
    learn_B: bool.
  Returns:
    rewards_B, one per completion, 0 where not valid.
  """
  axes.dims(outcome_B=outcome_B, learn_B=learn_B)
  return jnp.where(learn_B, outcome_B, 0)


def reward(reward_B, learn_B):
  """What the verifier or the reward function returned, as it is.

    r_i = reward_i

  Source: a reward on any scale, such as that of a reward model in Ouyang et al. 2022,
  arXiv:2203.02155. Differs from the paper: an unknown reward (NaN) gives 0 and is marked by
  learn_B, so that it is nobody's baseline.

  Args:
    reward_B: any numbers, NaN = could not tell.
    learn_B: bool.
  Returns:
    rewards_B, 0 where learn_B is False.
  """
  axes.dims(reward_B=reward_B, learn_B=learn_B)
  return jnp.where(learn_B, reward_B, 0)


def cascade(outcome_B, scores_B, learn_B, *, mode="addon", weight: ranges.ANY = 1.0):
  """A second verifier's word on what the first one rejects.

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
  """
  axes.dims(outcome_B=outcome_B, scores_B=scores_B, learn_B=learn_B)
  if mode == "addon":
    rewards_B = jnp.where(outcome_B > 0.5, outcome_B, weight * scores_B)
  elif mode == "only":
    rewards_B = scores_B
  elif mode == "mixed":
    rewards_B = weight * scores_B + (1 - weight) * outcome_B
  else:
    raise ValueError(f"mode={mode!r}: addon, only or mixed.")
  return jnp.where(learn_B, rewards_B, 0)


def score(scores_BE, learn_B, *, index: ranges.WHOLE = 0):
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
  """
  axes.dims(scores_BE=scores_BE, learn_B=learn_B)
  if index >= scores_BE.shape[1]:
    raise ValueError(f"index={index}: verifier.scores names {scores_BE.shape[1]} verifiers.")
  return jnp.where(learn_B, scores_BE[:, index], 0)
