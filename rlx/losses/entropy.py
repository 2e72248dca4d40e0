"""Entropy of the policy: as a bonus, and as a choice of tokens."""
import jax.numpy as jnp

from rlx.core import axes
from rlx.core import masked


def bonus(entropy_BT, mask_BT, *, coef):
  """A loss that rewards entropy.

    l_t = - coef H(pi(. | y_<t))

  Source: Mnih et al. 2016, arXiv:1602.01783 (A3C). Differs from the
  paper: nothing known.

  Args:
    entropy_BT: nats, differentiable; anything on padding.
    mask_BT: bool.
    coef: loss per nat.
  Returns:
    loss_BT, 0 on padding.
  """
  axes.dims(entropy_BT=entropy_BT, mask_BT=mask_BT)
  return -coef * masked.keep(entropy_BT, mask_BT)


def top(entropy_BT, mask_BT, *, fraction=0.2):
  """True on the tokens where the policy hesitates most: a mask for the loss.

    H_t >= the (1 - fraction) quantile of H over the batch's valid tokens

  Source: Wang et al. 2025, arXiv:2506.01939 (80/20). Differs from the
  paper: nothing known; the quantile interpolates linearly, as in TRL. It is of
  the rows given, so a microbatch has its own.

  Args:
    entropy_BT: nats; anything on padding.
    mask_BT: bool.
    fraction: share of valid tokens kept, in (0, 1].
  Returns:
    bool [B, T].
  """
  axes.dims(entropy_BT=entropy_BT, mask_BT=mask_BT)
  low = jnp.sort(jnp.where(mask_BT, entropy_BT, jnp.inf), axis=None)
  n = jnp.sum(mask_BT)
  at = jnp.maximum(n - 1, 0) * jnp.asarray(1 - fraction, entropy_BT.dtype)
  below = jnp.floor(at).astype(int)
  above = jnp.minimum(below + 1, jnp.maximum(n - 1, 0))
  edge = low[below] + masked.keep((low[above] - low[below]) * (at - below),
                                  above > below)
  return mask_BT & (entropy_BT >= edge)
