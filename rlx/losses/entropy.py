"""Entropy of the policy, as a bonus."""
from jax import Array

from rlx.core import ranges
from rlx.core.method import method


@method
def bonus(entropy_BT: Array, learn_BT: Array, *, coef: ranges.Number) -> Array:
  """A loss that rewards entropy.

    l_t = - coef H(pi(. | y_<t))

  Source: Mnih et al. 2016, arXiv:1602.01783 (A3C). Differs from the
  paper: nothing known.

  Args:
    entropy_BT: nats, differentiable; anything on padding.
    learn_BT: bool.
    coef: loss per nat.
  Returns:
    loss_BT, 0 on padding.
  Example:
    >>> entropy.bonus(jnp.array([[2., 1.]]), jnp.ones((1, 2), bool), coef=.5)
    Array([[-1. , -0.5]], dtype=float32)
  """
  return -coef * entropy_BT
