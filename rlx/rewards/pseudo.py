"""Rewards without a reference answer, by a vote of the prompt's completions."""
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
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
def confident(answer_PG: Array, sampler_logps_BT: Array, learn_PG: Array, learn_BT: Array, *,
              subgroups: ranges.Count = 1) -> Array:
  """SCOPE: 1 for the answer with the largest sum of confidences in its subgroup.

    r_i = 1 if a_i = argmax_a sum_{j in s(i): a_j = a} c_j else 0      c_j = exp(mean_t log p_jt)

  Smaller subgroups s have more different labels, and so less agreement on one wrong answer.

  Source: "Beyond Majority Voting: Towards Fine-grained and More Reliable Reward Signal for
  Test-Time Reinforcement Learning" (Wang et al. 2025, arXiv:2512.15146), as in its released code
  (szu-tera/SCOPE, grouputils.py). Differs from the code: the confidence is that of the drawn
  tokens, and not of the most likely ones at each step of the reasoning; a subgroup votes itself,
  and not a random sample of the whole group; their number is given, and not chosen by reward and
  diversity. Of equal sums the answer given first wins.

  Args:
    answer_PG: int, equal where answers are; -1 has no vote and gets 0.
    sampler_logps_BT: of the drawn tokens.
    learn_PG, learn_BT: bool.
    subgroups: of a prompt's completions, in order; it divides their number.
  Returns:
    rewards_B, 0 where not valid.
  Raises:
    ValueError: subgroups does not divide the number of completions.
  Example:
    >>> logps_BT = jnp.log(jnp.array([[.2], [.2], [.9]]))
    >>> pseudo.confident(jnp.array([[7, 7, 3]]), logps_BT, jnp.ones((1, 3), bool),
    ...                  jnp.ones((3, 1), bool))
    Array([0., 0., 1.], dtype=float32)
  """
  if answer_PG.shape[1] % subgroups:
    raise ValueError(f"subgroups={subgroups}: it has to divide the {answer_PG.shape[1]} "
                     "completions of a prompt.")
  mean_B = masked.mean(sampler_logps_BT, learn_BT, axis=1)
  weight_PG = jnp.exp(mean_B).reshape(answer_PG.shape)
  answer_SG, learn_SG, weight_SG = (
      x.reshape(-1, answer_PG.shape[1] // subgroups) for x in (answer_PG, learn_PG, weight_PG))
  label_S1 = _majority(answer_SG, learn_SG, weight_SG)
  return _states(answer_SG, label_S1, learn_SG).astype(jnp.float32).reshape(-1)


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


def _majority(answer_PG, learn_PG, weight_PG=1):
  """[P, 1], the answer of each prompt with the most votes or weight; -1 without a vote."""
  votes_PG = learn_PG & (answer_PG >= 0)
  agrees_PGG = (answer_PG[:, :, None] == answer_PG[:, None, :]) & votes_PG[:, None, :]
  weight_P1G = jnp.broadcast_to(weight_PG, answer_PG.shape)[:, None, :]
  # A vote of weight 0 wins over none.
  count_PG = jnp.where(votes_PG, jnp.sum(agrees_PGG * weight_P1G, axis=2), -1)
  first_P1 = jnp.argmax(count_PG, axis=1, keepdims=True)
  answer_PG = jnp.where(votes_PG, answer_PG, -1)
  return jnp.take_along_axis(answer_PG, first_P1, axis=1)
