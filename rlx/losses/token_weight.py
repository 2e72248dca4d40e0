"""Token weights, which multiply the advantages.

Each returns weight_BT, a constant (gradients stop), 0 outside the mask. Quantiles and
maxima are of the rows given: update_policy.py gives a whole minibatch, before it is cut into
microbatches.
"""
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method
from rlx.losses import _ratio


@method
def top(entropy_BT: Array, learn_BT: Array, *,
        fraction: Annotated[float, ranges.Range(1e-6, 1)] = 0.2,
        over: Literal["minibatch", "completion"] = "minibatch") -> Array:
  """1 on the tokens with the highest entropy, 0 on the others.

    w_t = 1 if H_t >= the (1 - fraction) quantile of H else 0

  over the valid tokens of the minibatch, or over those of token t's completion.

  Source: Wang et al. 2025, arXiv:2506.01939 (80/20), of the minibatch; EARL, Shi et
  al. 2025, arXiv:2511.12033, of the completion. Differs from the papers: nothing
  known; the quantile interpolates linearly, as in TRL.

  Args:
    entropy_BT: nats; anything on padding.
    learn_BT: bool.
    fraction: share of valid tokens kept.
    over: minibatch or completion.
  Returns:
    weight_BT.
  Raises:
    ValueError: an unknown `over`.
  Example:
    >>> token_weight.top(jnp.array([[.1, .5, .2, .4]]), jnp.ones((1, 4), bool), fraction=.5)
    Array([[0., 1., 0., 1.]], dtype=float32)
  """
  rows = lambda x_BT: x_BT if over == "completion" else x_BT.reshape(1, -1)
  low = jnp.sort(jnp.where(rows(learn_BT), rows(entropy_BT), jnp.inf), axis=1)
  last = jnp.maximum(jnp.sum(rows(learn_BT), axis=1, keepdims=True) - 1, 0)
  at = last * jnp.asarray(1 - fraction, entropy_BT.dtype)
  below = jnp.floor(at).astype(int)
  above = jnp.minimum(below + 1, last)
  pick = lambda i: jnp.take_along_axis(low, i, axis=1)
  edge = pick(below) + masked.where_valid((pick(above) - pick(below)) * (at - below), above > below)
  return (entropy_BT >= edge).astype(entropy_BT.dtype)


@method
def steer(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, entropy_BT: Array,
          learn_BT: Array, *, low: Annotated[float, ranges.Range(1e-6, 1e6)] = 0.8,
          high: Annotated[float, ranges.Range(1e-6, 1e6)] = 1.2,
          shape: Literal["exponential", "linear"] = "exponential") -> Array:
  """STEER: less weight on tokens whose update would change the entropy most.

    omega_t = |A rho (1 - pi_theta(y_t)) (log pi_theta(y_t) + H_t)|
    exponential:  w_t = low^(omega_t / max(max omega, 0.02))
    linear:       w_t = high - (high - low) omega_t / max omega

  omega is the change of entropy that a token's gradient makes, to first order.

  Source: Hao et al. 2025, arXiv:2510.10150. Differs from the paper: nothing known;
  0.02 is from the released code, where w multiplies the loss of `ppo_clip`, which
  is the same, as w > 0.

  Args:
    logps_BT, old_logps_BT, advantages_BT: as in policy.py.
    entropy_BT: nats, of the policy being updated.
    learn_BT: bool.
    low: weight where omega is largest.
    high: of shape="linear": weight where omega is 0.
    shape: exponential or linear.
  Returns:
    weight_BT.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> token_weight.steer(logps_BT, old_logps_BT, advantages_BT, jnp.array([[.6, .3]]),
    ...                    learn_BT).round(1)
    Array([[0.8, 0.8]], dtype=float32)
  """
  omega_BT = jnp.abs(advantages_BT * _ratio.importance_ratio(logps_BT, old_logps_BT)
                     * -jnp.expm1(logps_BT) * (logps_BT + entropy_BT))
  largest = jnp.max(omega_BT)
  if shape == "exponential":
    weight_BT = low ** (omega_BT / jnp.maximum(largest, 0.02))
  else:
    weight_BT = high - (high - low) * omega_BT / jnp.where(largest > 0, largest, 1)
  return jax.lax.stop_gradient(weight_BT)
