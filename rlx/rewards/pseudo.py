"""Rewards without a reference answer, by a vote of the prompt's completions."""
import jax.numpy as jnp
from jax import Array

from rlx.core.method import method


@method
def majority(answer_PG: Array, learn_PG: Array) -> Array:
  """TTRL: 1 for the answer that most completions of the prompt give.

    r_i = 1 if a_i = argmax_a |{j : a_j = a}| else 0

  Source: Zuo et al. 2025, arXiv:2504.16084. Differs from the paper: nothing known;
  of tied answers the one given first wins. Verdicts still decide which completions
  are valid and which prompts rollouts.filter_groups takes, unless that is
  filter_groups.with_verdict.

  Args:
    answer_PG: int, equal where answers are; -1 has no vote and gets 0.
    learn_PG: bool.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> pseudo.majority(jnp.array([[7, 7, 3]]), jnp.ones((1, 3), bool))
    Array([1., 1., 0.], dtype=float32)
  """
  is_label_PG = _states(answer_PG, _majority(answer_PG, learn_PG), learn_PG)
  return is_label_PG.astype(jnp.float32).reshape(-1)


@method
def paired(answer_PG: Array, pair_PG: Array, learn_PG: Array) -> Array:
  """Co-Reward: 1 for the answer that most completions of the other wording give.

    r_i = 1 if a_i = argmax_a |{j : a'_j = a}| else 0

  with a' the answers of the same question, worded otherwise. A constant answer that
  one wording falls into is no label for itself.

  Source: Zhang et al. 2025, arXiv:2508.00410. Differs from the paper: nothing known;
  a tie as in `majority`.

  Args:
    answer_PG: as in `majority`, equal across prompts where answers are.
    pair_PG: int, the same in a row: which row of answer_PG has the other wording; -1
      without one, which gets 0.
    learn_PG: bool.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> answer_PG, pair_PG = jnp.array([[7, 7], [3, 7]]), jnp.array([[1, 1], [0, 0]])
    >>> pseudo.paired(answer_PG, pair_PG, jnp.ones((2, 2), bool))
    Array([0., 0., 0., 1.], dtype=float32)
  """
  pair_P1 = pair_PG[:, :1]
  other_P1 = jnp.where(pair_P1 >= 0, _majority(answer_PG, learn_PG)[pair_P1[:, 0]], -1)
  return _states(answer_PG, other_P1, learn_PG).astype(jnp.float32).reshape(-1)


@method
def wrong_majority(answer_PG: Array, outcome_PG: Array, learn_PG: Array) -> Array:
  """The incorrect control: `majority` on prompts whose majority is wrong, else 0.

    r_i = 1 if a_i = m and the verdict of m is wrong,  m = the majority answer

  Source: Shao et al. 2025, arXiv:2506.10947. Differs from the paper: it takes the
  prompts with a wrong majority from the model's start, once; here they are the
  current policy's, and the others stay in the batch without a signal.

  Args:
    answer_PG: as in `majority`.
    outcome_PG: verdicts, right above 1/2; anything where learn_PG is False.
    learn_PG: bool.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> pseudo.wrong_majority(jnp.array([[7, 7, 3]]), jnp.array([[0., 0., 1.]]),
    ...                       jnp.ones((1, 3), bool))
    Array([1., 1., 0.], dtype=float32)
  """
  is_label_PG = _states(answer_PG, _majority(answer_PG, learn_PG), learn_PG)
  is_right_P1 = jnp.any(is_label_PG & (outcome_PG > 0.5), axis=1, keepdims=True)
  return (is_label_PG & ~is_right_P1).astype(jnp.float32).reshape(-1)


def _states(answer_PG, label_P1, learn_PG):
  """bool [P, G]: does the completion give this answer?"""
  return learn_PG & (answer_PG >= 0) & (answer_PG == label_P1)


def _majority(answer_PG, learn_PG):
  """[P, 1], each prompt's majority answer, -1 without a vote."""
  votes_PG = learn_PG & (answer_PG >= 0)
  agrees_PGG = (answer_PG[:, :, None] == answer_PG[:, None, :]) & votes_PG[:, None, :]
  count_PG = jnp.where(votes_PG, jnp.sum(agrees_PGG, axis=2), 0)
  first_P1 = jnp.argmax(count_PG, axis=1, keepdims=True)
  answer_PG = jnp.where(votes_PG, answer_PG, -1)
  return jnp.take_along_axis(answer_PG, first_P1, axis=1)
