"""What the completions of a group say of the prefixes they share.

TEMPO, Tran et al. 2025, arXiv:2509.18314.
"""
import jax.numpy as jnp

from rlx.core import axes, masked


def values(tokens_BT, mask_BT, outcome_PG, valid_PG):
  """The value of every prefix, from the completions of the group that share it.

    V(y_{<=t}) = mean of outcome_j over valid j with y^j_{<=t} = y_{<=t}

  Source: the targets of TVM, Lee et al. 2024, arXiv:2407.12863; the values of TEMPO,
  Tran et al. 2025, arXiv:2509.18314. Differs from the papers: outcomes may be
  fractions. Where no prefix is shared every token has its own outcome.

  Args:
    tokens_BT: completion tokens; anything on padding.
    mask_BT: bool.
    outcome_PG: verdicts or rewards; anything where not valid.
    valid_PG: bool.
  Returns:
    values_BT, 0 on padding and where not valid.
  """
  axes.dims(tokens_BT=tokens_BT, mask_BT=mask_BT, outcome_PG=outcome_PG, valid_PG=valid_PG)
  by_group = lambda x_BT: x_BT.reshape(*valid_PG.shape, -1)
  tokens_PGT, mask_PGT = by_group(tokens_BT), by_group(mask_BT)
  same_PGGT = ((tokens_PGT[:, :, None] == tokens_PGT[:, None])
               & mask_PGT[:, :, None] & mask_PGT[:, None])
  # How many tokens two completions share, and not a sum along them: of the arrays with
  # four axes none has to be kept.
  t, width = jnp.arange(mask_BT.shape[1])[None, None, None, :], mask_BT.shape[1]
  common_PGG1 = jnp.min(jnp.where(same_PGGT, width, t), axis=3, initial=width, keepdims=True)
  shares_PGGT = (t < common_PGG1) & valid_PG[:, None, :, None]
  values_PGT = masked.mean(jnp.broadcast_to(
      outcome_PG[:, None, :, None], shares_PGGT.shape), shares_PGGT, axis=2)
  return masked.where_valid(values_PGT.reshape(mask_BT.shape),
                            mask_BT & valid_PG.reshape(-1)[:, None])
