"""Entropy of the policy, as a bonus."""
from rlx.core import axes
from rlx.core import masked
from rlx.core import ranges


def bonus(entropy_BT, learn_BT, *, coef: ranges.ANY):
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
  """
  axes.dims(entropy_BT=entropy_BT, learn_BT=learn_BT)
  return -coef * masked.where_valid(entropy_BT, learn_BT)
