"""Regression of the value model."""
import jax.numpy as jnp
from jax import Array

from rlx.core import ranges
from rlx.core.method import method


@method
def clipped(values_BT: Array, old_values_BT: Array, returns_BT: Array,
            learn_BT: Array | None = None, *,
            clip: ranges.Positive | None = None) -> Array | tuple[Array, dict[str, Array]]:
  """Squared error, pessimistic about values that moved further than `clip`.

    l_t = 1/2 max((V - R)^2, (clip(V, V_old - c, V_old + c) - R)^2)

  Source: the PPO implementation of Dhariwal et al. 2017, stated in Huang et al.
  2024, arXiv:2403.17031. Differs from the source: nothing known.

  Args:
    values_BT: of the value model being updated, differentiable.
    old_values_BT: before the update.
    returns_BT: targets.
    learn_BT: bool; elsewhere the loss is 0. None: all entries are read, and NaN
      on padding would reach the gradient.
    clip: c, in units of the return; None is plain squared error.
  Returns:
    loss_BT and, with clip, {"clip": where the clipped value has the larger error}.
  Example:
    >>> value.clipped(jnp.array([[2.]]), jnp.array([[0.]]), jnp.array([[3.]]), clip=.5)[0]
    Array([[3.125]], dtype=float32)
  """
  loss_BT = (values_BT - returns_BT)**2
  if clip is None: return loss_BT / 2
  near_BT = jnp.clip(values_BT, old_values_BT - clip, old_values_BT + clip)
  near_loss_BT = (near_BT - returns_BT)**2
  return jnp.maximum(loss_BT, near_loss_BT) / 2, {"clip": near_loss_BT > loss_BT}
