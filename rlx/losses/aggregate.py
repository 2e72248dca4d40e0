"""Per-token losses -> a mean kept as (total, weight).

The division happens once, after microbatches and devices are summed, so the
gradient does not depend on how a batch is cut.
"""
import jax.numpy as jnp

from rlx.core import axes
from rlx.core import masked
from rlx.core import records

MODES = ("token-mean", "token-sum", "seq-mean-token-sum",
         "seq-mean-token-mean", "seq-mean-token-sum-norm")


def aggregate(loss_BT, learn_BT, *, mode, length=None):
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
  """
  sizes = axes.dims(loss_BT=loss_BT, learn_BT=learn_BT)
  if mode not in MODES: raise ValueError(f"mode={mode!r}: one of {MODES}.")
  row_B = masked.total(loss_BT, learn_BT, axis=1)
  tokens_B = jnp.sum(learn_BT, axis=1)
  rows = jnp.sum(tokens_B > 0).astype(loss_BT.dtype)
  if mode == "token-mean":
    return records.Weighted(jnp.sum(row_B), jnp.sum(tokens_B).astype(loss_BT.dtype))
  if mode == "token-sum":
    return records.Weighted(jnp.sum(row_B), jnp.zeros((), loss_BT.dtype))
  if mode == "seq-mean-token-mean":
    row_B = row_B / jnp.maximum(tokens_B, 1)
  elif mode == "seq-mean-token-sum-norm":
    row_B = row_B / (sizes["T"] if length is None else length)
  return records.Weighted(jnp.sum(row_B), rows)
