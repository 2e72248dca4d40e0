"""Rewards of policies that score completions, from what the scores say of a pair."""
import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method


@method
def bradley_terry(outcome_PG: Array, pair_PG: Array, better_PG: Array, learn_PG: Array, *,
                  scale: ranges.Positive = 10.0) -> Array:
  """IRPO: how often the score of a completion wins against those of the other one of its pair.

    r_i = mean_j sigma(z (s_i - s'_j))      i about the better completion of a pair
    r_i = mean_j sigma(z (s'_j - s_i))      i about the worse one

  with s' the scores of the other completion. Of n completions it takes n judgements, and not
  n (n - 1).

  Source: Song et al. 2026, arXiv:2601.00677. Differs from the paper: its comparison of two scores
  is known from its abstract alone, which names the Bradley-Terry model; without a score the reward
  is 0, and such judgements of the other completion are left out.

  Args:
    outcome_PG: s, the stated score in [0, 1] (judging.score); 0: none is stated.
    pair_PG: int, the same in a row: which row is about the other completion.
    better_PG: 1 in rows about the better completion of a pair, 0 in the others.
    learn_PG: bool.
    scale: z, 10 for scores of 10.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> score_PG, pair_PG = jnp.array([[.8, 0.], [.8, .7]]), jnp.array([[1, 1], [0, 0]])
    >>> judging.bradley_terry(score_PG, pair_PG, jnp.array([[1, 1], [0, 0]]),
    ...                       jnp.ones((2, 2), bool))
    Array([0.6155..., 0.       , 0.5      , 0.731...], dtype=float32)
  """
  stated_PG = learn_PG & (outcome_PG > 0)
  other_P = pair_PG[:, 0]
  sign_PG = jnp.where(better_PG > 0.5, 1.0, -1.0)
  gap_PGH = outcome_PG[:, :, None] - outcome_PG[other_P][:, None, :]
  won_PGH = jax.nn.sigmoid(scale * sign_PG[:, :, None] * gap_PGH)
  counts_PGH = jnp.broadcast_to(stated_PG[other_P][:, None, :], won_PGH.shape)
  return masked.where_valid(masked.mean(won_PGH, counts_PGH, axis=2), stated_PG).reshape(-1)
