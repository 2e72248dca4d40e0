"""Importance ratios, and PPO's clip, of the policy losses."""
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked

Level = Literal["token", "sequence"]
Clipped = tuple[Array, dict[str, Array]]  # loss_BT, {name: whose gradient is removed}
MAX_LOG_RATIO = 20.0     # e^20: keeps exp finite, far outside any clip range
MAX_LOG_SEQUENCE = 10.0  # of a ratio of many tokens, as in verl


def importance_ratio(logps_BT, old_logps_BT, level="token", learn_BT=None):
  """rho_t, or the ratio of the completion with the gradient of each token's own logp."""
  d_BT = logps_BT - old_logps_BT
  if level == "token":
    return jnp.exp(jnp.clip(d_BT, -MAX_LOG_RATIO, MAX_LOG_RATIO))
  mean_B1 = masked.mean(d_BT, learn_BT, axis=1, keepdims=True)
  log_BT = logps_BT + jax.lax.stop_gradient(mean_B1 - logps_BT)
  return jnp.exp(jnp.minimum(log_BT, MAX_LOG_SEQUENCE))


def clip_loss(ratio_BT, advantages_BT, clip_low, clip_high, dual_clip=None, ratio_cap=None):
  """PPO's clipped loss with its two further bounds, see policy.ppo_clip.

  Returns:
    loss_BT, and whose gradient is removed: clip_low (A < 0, the ratio is low), clip_high
    (A > 0, it is high) and, with a further bound, clip_dual (A < 0, it is high).
  """
  near_BT = jnp.clip(ratio_BT, 1 - clip_low, 1 + clip_high)
  removed = dict(clip_low=(advantages_BT < 0) & (ratio_BT < 1 - clip_low),
                 clip_high=(advantages_BT > 0) & (ratio_BT > 1 + clip_high))
  if bounds := [x for x in (dual_clip, ratio_cap) if x is not None]:
    removed["clip_dual"] = (advantages_BT < 0) & (ratio_BT > min(bounds))
  if ratio_cap is not None: ratio_BT = jnp.minimum(ratio_BT, ratio_cap)
  loss_BT = jnp.maximum(-advantages_BT * ratio_BT, -advantages_BT * near_BT)
  if dual_clip is None: return loss_BT, removed
  bounded_BT = jnp.minimum(loss_BT, -advantages_BT * dual_clip)
  return jnp.where(advantages_BT < 0, bounded_BT, loss_BT), removed
