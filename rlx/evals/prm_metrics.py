"""Agreement of a PRM's scores with verdicts. Pure; runs on the device."""
from typing import Literal

import jax.numpy as jnp
from jax import Array

from rlx.core import masked
from rlx.core.method import method



@method
def accuracy(prm_logps_BT: Array, prm_ref_logps_BT: Array, mask_BT: Array, outcome_PG: Array,
             valid_PG: Array, *, ties: Literal["half", "reference"] = "half") -> Array:
  """Share of pairs of a prompt's completions that the PRM orders as their verdicts do.

    acc_p = sum_{i<j} |o_i - o_j| agree(i, j) / sum_{i<j} |o_i - o_j|
    agree = 1 if sign(s_i - s_j) = sign(o_i - o_j),  1/2 if s_i = s_j
    s_i = sum_t log pi_phi - log pi_ref

  and the mean over prompts. A prompt whose verdicts do not differ counts 1/2.

  Source: compute_dpo_accuracy of the released PRIME code, arXiv:2502.01456.
  Differs from the released code: equal scores count 1/2; there the outcome
  depends on the order of the rows (ties="reference").

  Args:
    prm_logps_BT, prm_ref_logps_BT: nats; anything on padding.
    mask_BT: bool.
    outcome_PG: verdicts, NaN where not valid.
    valid_PG: bool.
    ties: half or reference.
  Returns:
    scalar in [0, 1].
  Example:
    >>> score_BT, outcome_PG = jnp.array([[2.], [3.], [1.]]), jnp.array([[1., .5, 0.]])
    >>> prm_metrics.accuracy(score_BT, 0 * score_BT, score_BT > 0, outcome_PG, outcome_PG >= 0)
    Array(0.75, dtype=float32)
  """
  score_PG = jnp.sum(prm_logps_BT - prm_ref_logps_BT, axis=1).reshape(valid_PG.shape)
  later_GG = jnp.triu(jnp.ones((valid_PG.shape[1],) * 2, bool), 1)
  is_pair_PGG = valid_PG[:, :, None] & valid_PG[:, None, :] & later_GG[None]
  score_PGG = score_PG[:, :, None] - score_PG[:, None, :]
  outcome_PGG = outcome_PG[:, :, None] - outcome_PG[:, None, :]
  agree_PGG = ((score_PGG > 0) == (outcome_PGG > 0)).astype(score_PG.dtype)
  if ties == "half": agree_PGG = jnp.where(score_PGG == 0, 0.5, agree_PGG)
  weight_PGG = masked.where_valid(jnp.abs(outcome_PGG), is_pair_PGG)
  weight_P = jnp.sum(weight_PGG, axis=(1, 2))
  right_P = jnp.sum(weight_PGG * agree_PGG, axis=(1, 2))
  has_P = weight_P > 0
  return jnp.mean(jnp.where(has_P, right_P / jnp.where(has_P, weight_P, 1), 0.5))


@method
def share_of_varied(outcome_PG: Array, valid_PG: Array) -> Array:
  """Share of prompts whose verdicts differ: those that `accuracy` says something about.

  Example:
    >>> outcome_PG = jnp.array([[1., 0.], [1., 1.], [0., jnp.nan], [0., 1.]])
    >>> prm_metrics.share_of_varied(outcome_PG, outcome_PG >= 0)
    Array(0.5, dtype=float32)
  """
  low_P = jnp.min(outcome_PG, axis=1, where=valid_PG, initial=jnp.inf)
  high_P = jnp.max(outcome_PG, axis=1, where=valid_PG, initial=-jnp.inf)
  return jnp.mean(high_P > low_P)


def take_out_ties(accuracy: float, varied: float) -> float:
  """`accuracy` of the prompts whose verdicts differ; NaN if there are none.

  `accuracy` counts the other prompts as 1/2, so that the mean over steps falls to 1/2, whatever
  the PRM says, while the policy learns to be always right.

  Args:
    accuracy: mean of `accuracy`.
    varied: mean of `share_of_varied` of the same batches.
  Example:
    >>> prm_metrics.take_out_ties(0.625, 0.5)
    0.75
  """
  return 0.5 + (accuracy - 0.5) / varied if varied else float("nan")


@method
def absolute_accuracy(prm_logps_BT: Array, prm_ref_logps_BT: Array, mask_BT: Array,
                      outcome_B: Array, valid_B: Array) -> Array:
  """Share of completions whose score has the sign of their verdict.

    sign(s_i) = sign(2 outcome_i - 1)

  Source: compute_dpo_abs_accuracy of verl's PRIME recipe. Args: as `accuracy`.

  Example:
    >>> score_BT, outcome_B = jnp.array([[1.], [-1.], [2.], [2.]]), jnp.array([1., 0., 0., 1.])
    >>> prm_metrics.absolute_accuracy(score_BT, 0 * score_BT, score_BT != 0, outcome_B,
    ...                               outcome_B >= 0)
    Array(0.75, dtype=float32)
  """
  score_B = jnp.sum(prm_logps_BT - prm_ref_logps_BT, axis=1)
  right_B = jnp.sign(score_B) == jnp.sign(2 * outcome_B - 1)
  return masked.mean(right_B.astype(score_B.dtype), valid_B)


@method
def correlation(x_B: Array, y_B: Array, valid_B: Array) -> Array:
  """Pearson's correlation over valid rows; 0 if one of the two is constant.

  Example:
    >>> prm_metrics.correlation(jnp.array([1., 2., 4.]), jnp.array([2., 4., 8.]), jnp.ones(3, bool))
    Array(1., dtype=float32)
  """
  centred = lambda a_B: masked.where_valid(a_B - masked.mean(a_B, valid_B), valid_B)
  x_B, y_B = centred(x_B), centred(y_B)
  square = jnp.sum(x_B**2) * jnp.sum(y_B**2)
  return jnp.sum(x_B * y_B) / jnp.sqrt(jnp.where(square > 0, square, 1))
