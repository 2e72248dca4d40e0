"""Per-token losses -> a mean kept as (total, weight).

The division happens once, after microbatches and devices are summed, so the
gradient does not depend on how a batch is cut.
"""
from typing import Literal, get_args

import jax.numpy as jnp
from jax import Array

from rlx.core import masked, records
from rlx.core.method import method

Mode = Literal["token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean",
               "seq-mean-token-sum-norm"]
MODES = get_args(Mode)


def mean(x: Array, mask: Array) -> records.Weighted:
  """Mean of `x` where `mask`, which has the same shape; a bool counts as 0 or 1.

  Example:
    >>> aggregate.mean(jnp.array([1., 3.]), jnp.array([True, True])).mean()
    Array(2., dtype=float32)
  """
  total = masked.total(x, mask)
  if not jnp.issubdtype(total.dtype, jnp.floating): total = total.astype(jnp.float32)
  return records.Weighted(total, jnp.sum(mask).astype(total.dtype))


@method
def aggregate(loss_BT: Array, learn_BT: Array, *, mode: Mode,
              length: int | None = None) -> records.Weighted:
  """Reduces a loss per token.

    token-mean               sum_it l / number of tokens
    token-sum                sum_it l
    seq-mean-token-sum       mean_i sum_t l
    seq-mean-token-mean      mean_i mean_t l
    seq-mean-token-sum-norm  mean_i sum_t l / length

  Means over i are over rows with at least one token in the mask.

  Source: DAPO, Yu et al. 2025, arXiv:2503.14476, eq. 8 (token-mean); GRPO,
  arXiv:2402.03300, eq. 3 (seq-mean-token-mean); Dr. GRPO, arXiv:2503.20783
  (seq-mean-token-sum-norm). Differs from the papers: nothing known.

  Args:
    loss_BT: anything on padding.
    learn_BT: bool, the tokens that count.
    mode: one of MODES.
    length: tokens, the constant of seq-mean-token-sum-norm; None is T. Not
      used by the other modes.
  Returns:
    Weighted; its weight is 0 for token-sum, which divides by nothing.
  Example:
    >>> loss_BT = jnp.array([[1., 2., 3.], [4., 0., 0.]])
    >>> learn_BT = jnp.array([[True] * 3, [True, False, False]])
    >>> aggregate.aggregate(loss_BT, learn_BT, mode="token-mean").mean()
    Array(2.5, dtype=float32)
    >>> aggregate.aggregate(loss_BT, learn_BT, mode="seq-mean-token-mean").mean()
    Array(3., dtype=float32)
  """
  row_B = jnp.sum(loss_BT, axis=1)
  tokens_B = jnp.sum(learn_BT, axis=1)
  rows = jnp.sum(tokens_B > 0).astype(loss_BT.dtype)
  if mode == "token-mean": return mean(loss_BT, learn_BT)
  if mode == "token-sum": return records.Weighted(jnp.sum(row_B), jnp.zeros((), loss_BT.dtype))
  if mode == "seq-mean-token-mean": row_B = row_B / jnp.maximum(tokens_B, 1)
  if mode == "seq-mean-token-sum-norm":
    row_B = row_B / (loss_BT.shape[1] if length is None else length)
  return records.Weighted(jnp.sum(row_B), rows)
