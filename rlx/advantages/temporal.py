"""Advantages along the tokens of a completion.

Tokens outside the mask, at the end or inside (observations), are not time:
they are skipped and what follows them is carried over without discount.
"""
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method


@method
def return_to_go(rewards_BT: Array, learn_BT: Array, *, gamma: ranges.Share = 1.0) -> Array:
  """Discounted rewards from each token on, no baseline.

    G_t = r_t + gamma G_{t+1}

  Source: Williams 1992, REINFORCE; the reward-to-go of PRIME, Cui et al. 2025,
  arXiv:2502.01456, eq. 5. Differs from the papers: nothing known.

  Args:
    rewards_BT: anything on padding.
    learn_BT: bool.
    gamma: discount per token.
  Returns:
    advantages_BT, 0 on padding.
  Example:
    >>> temporal.return_to_go(jnp.array([[0., 0., 1.]]), jnp.ones((1, 3), bool), gamma=.5)
    Array([[0.25, 0.5 , 1.  ]], dtype=float32)
  """
  return masked.accumulate(rewards_BT, _decay(gamma, learn_BT, rewards_BT.dtype), reverse=True)


@method
def gae(rewards_BT: Array, learn_BT: Array, values_BT: Array, *, gamma: ranges.Share = 1.0,
        lam: ranges.Share = 1.0) -> Array:
  """Generalized advantage estimation.

    delta_t = r_t + gamma V_{t+1} - V_t      V after the last token = 0
    A_t = delta_t + gamma lam A_{t+1}

  Source: Schulman et al. 2016, arXiv:1506.02438, eq. 11-16. Differs from the
  paper: tokens outside the mask are skipped. Not whitened.

  Args:
    rewards_BT, values_BT: anything on padding. values_BT[b, t] is the value of
      the state in which token t is drawn.
    learn_BT: bool.
    gamma, lam: per token.
  Returns:
    advantages_BT, 0 on padding. Targets of the value model: A + V.
  Example:
    >>> rewards_BT, values_BT = jnp.array([[0., 1.]]), jnp.array([[.25, .5]])
    >>> temporal.gae(rewards_BT, jnp.ones((1, 2), bool), values_BT)
    Array([[0.75, 0.5 ]], dtype=float32)
  """
  # The value at this token or, outside the mask, at the next one inside.
  carried_BT = masked.accumulate(values_BT, ~learn_BT, reverse=True)
  next_BT = jnp.pad(carried_BT[:, 1:], ((0, 0), (0, 1)))
  delta_BT = masked.where_valid(rewards_BT + gamma * next_BT - values_BT, learn_BT)
  return masked.accumulate(delta_BT, _decay(gamma * lam, learn_BT, delta_BT.dtype), reverse=True)


def _decay(gamma, learn_BT, dtype):
  return jnp.where(learn_BT, jnp.asarray(gamma, dtype), 1)
