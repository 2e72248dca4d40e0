"""Importance weights for tokens that the sampler drew from another distribution.

The sampler computes in another precision, order or at another step: what it drew
from (mu, sampler_logps) is not the policy before the update (pi_old, old_logps).
Each function returns weight_BT for the loss of a token, a constant (gradients stop),
1 where both agree and 0 outside the mask. Log-ratios are clamped to [-20, 20].
"""
from typing import Annotated

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method
from rlx.losses import _ratio


@method
def tis(old_logps_BT: Array, sampler_logps_BT: Array, learn_BT: Array, *,
        cap: ranges.Positive = 2.0, level: _ratio.Level = "token") -> Array:
  """TIS: truncated importance sampling.

    w = min(pi_old / mu, cap)

  of the token, or with level="sequence" the product over the completion.

  Source: Yao et al. 2025, "Your Efficient RL Framework Secretly Brings You
  Off-Policy RL Training", after the truncated weights of Espeholt et al. 2018,
  arXiv:1802.01561. Differs from the source: the clamp, and the sequence level,
  which is of Liu et al. 2025 (see `seq_mis`).

  Args:
    old_logps_BT, sampler_logps_BT: nats; anything on padding.
    learn_BT: bool.
    cap: > 1.
    level: token or sequence.
  Returns:
    weight_BT.
  Example:
    >>> old_logps_BT = jnp.log(jnp.array([[.5, .9]]))
    >>> sampler_logps_BT = jnp.log(jnp.array([[.5, .3]]))
    >>> rollout_correction.tis(old_logps_BT, sampler_logps_BT, jnp.ones((1, 2), bool))
    Array([[1., 2.]], dtype=float32)
  """
  return jnp.minimum(_weight(old_logps_BT, sampler_logps_BT, level), cap)


@method
def icepop(old_logps_BT: Array, sampler_logps_BT: Array, learn_BT: Array, *,
           low: ranges.Share = 0.5, high: Annotated[float, ranges.Range(1, 1e12)] = 5.0) -> Array:
  """IcePop: no gradient from tokens on which sampler and trainer disagree.

    w = k if low <= k <= high else 0,   k = pi_old / mu

  Source: Ling Team 2025, arXiv:2510.18855. Differs from the paper: the clamp.

  Args:
    low, high: the range of k that counts.
    Otherwise, and Returns: as `tis`.
  Example:
    >>> old_logps_BT = jnp.log(jnp.array([[.5, .9]]))
    >>> sampler_logps_BT = jnp.log(jnp.array([[.5, .1]]))
    >>> rollout_correction.icepop(old_logps_BT, sampler_logps_BT, jnp.ones((1, 2), bool))
    Array([[1., 0.]], dtype=float32)
  """
  weight_BT = _weight(old_logps_BT, sampler_logps_BT, "token")
  return masked.where_valid(weight_BT, (weight_BT >= low) & (weight_BT <= high))


@method
def seq_mis(old_logps_BT: Array, sampler_logps_BT: Array, learn_BT: Array, *,
            cap: ranges.Positive = 3.0) -> Array:
  """Masked importance sampling: completions far from the policy are dropped.

    w = k if k <= cap else 0,   k = prod_t pi_old / mu

  Source: Liu et al. 2025, "When Speed Kills Stability: Demystifying RL Collapse
  from the Training-Inference Mismatch"; the rule of `icepop`, arXiv:2510.18855,
  for a completion. Differs from the source: the clamp; cap is TRL's.

  Args:
    cap: > 1.
    Otherwise, and Returns: as `tis`.
  Example:
    >>> old_logps_BT = jnp.log(jnp.array([[.5, .5]]))
    >>> sampler_logps_BT = jnp.log(jnp.array([[.5, .25]]))
    >>> rollout_correction.seq_mis(old_logps_BT, sampler_logps_BT, jnp.ones((1, 2), bool))
    Array([[2., 2.]], dtype=float32)
  """
  weight_BT = _weight(old_logps_BT, sampler_logps_BT, "sequence")
  return masked.where_valid(weight_BT, weight_BT <= cap)


@method
def opsm(logps_BT: Array, sampler_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
         delta: ranges.NotNegative = 0.5) -> Array:
  """Off-policy sequence masking: drops failures that the policy has moved away from.

    w = 0 if A < 0 and mean_t log(mu / pi_theta) > delta else 1

  Source: DeepSeek-AI 2025, arXiv:2512.02556 (DeepSeek-V3.2). Differs from the
  paper: it gives no delta; the default is a suggestion in TRL's documentation.

  Args:
    logps_BT: of the policy being updated, nats.
    sampler_logps_BT: what the tokens were drawn from, nats.
    advantages_BT: anything on padding.
    learn_BT: bool.
    delta: nats per token.
  Returns:
    weight_BT, 0 or 1.
  Example:
    >>> logps_BT, sampler_logps_BT = jnp.array([[-2.], [-2.]]), jnp.array([[-1.], [-1.]])
    >>> rollout_correction.opsm(logps_BT, sampler_logps_BT, jnp.array([[-1.], [1.]]),
    ...                         jnp.ones((2, 1), bool))
    Array([[0.],
           [1.]], dtype=float32)
  """
  gap_B1 = masked.mean(sampler_logps_BT - logps_BT, learn_BT, axis=1, keepdims=True)
  return (~((advantages_BT < 0) & (gap_B1 > delta))).astype(logps_BT.dtype)


def _weight(old_logps_BT, sampler_logps_BT, level):
  """pi_old / mu of each token, or its product over the completion on all of them."""
  log_BT = old_logps_BT - sampler_logps_BT
  if level == "sequence":
    log_BT = jnp.broadcast_to(jnp.sum(log_BT, axis=1, keepdims=True), log_BT.shape)
  log_BT = jnp.clip(log_BT, -_ratio.MAX_LOG_RATIO, _ratio.MAX_LOG_RATIO)
  return jax.lax.stop_gradient(jnp.exp(log_BT))
