"""Several scores with thresholds, whose weights are learned while the policy learns."""
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import INITIAL, method


@method(state=dict(multiplier_E=0.0, velocity_E=0.0))
def lagrangian(scores_BE: Array, old_logps_BT: Array, ref_logps_BT: Array, learn_BT: Array,
               learn_B: Array, *, thresholds: ranges.Numbers,
               constraint: Literal["at_least", "equal"] = "at_least",
               rate: ranges.NotNegative = 0.01, momentum: ranges.BelowOne = 0.1,
               multiplier_E: Array = INITIAL, velocity_E: Array = INITIAL
               ) -> tuple[Array, dict[str, Array], dict[str, Array]]:
  """Constrained RLHF: each score has weight until it has reached its threshold, the KL the rest.

    r_t = -(E - sum_e mu_e) K_t + [t last] sum_e mu_e z_e
    mu = sigmoid(lambda)  at_least: the mean score is to be at least theta;  tanh(lambda)  equal
    lambda <- lambda - rate v,   v <- momentum v + mu'(lambda) (mean of s over the batch - theta)

  z are the scores s and K the log-ratios log pi - log pi_ref, each shifted and scaled so that the
  sums over completions have mean 0 and variance 1 in the batch. lambda descends sum_e mu_e (mean
  s_e - theta_e), while the policy ascends it: a weight rises while the mean score is below its
  threshold and falls beyond it, so that no score is driven further than it is good for.

  Source: Moskovitz et al. 2023, arXiv:2310.04373, and its code (rate 0.01 to 0.1). Differs from
  the paper: rewards have one scale, where it has a value model for each score and whitens
  advantages; lambda starts at 0, there near it, drawn from N(0, 0.01).

  Args:
    scores_BE: of the verifiers in verifier.scores; anything where learn_B is False.
    old_logps_BT, ref_logps_BT: of the policy and its reference, nats.
    learn_BT, learn_B: bool.
    thresholds: theta, one for each score, in its unit.
    constraint: at_least or equal; with the latter a weight may be below 0.
    rate, momentum: of the descent.
    multiplier_E, velocity_E: lambda and v, state between steps; 0 at the start.
  Returns:
    rewards_BT, 0 where learn_BT is False; the weights mu as metrics; the next state, which stays
    if no completion learns.
  Raises:
    ValueError: not one threshold for each score, or an unknown constraint.
  Example:
    >>> rewards_BT, weights, state = constrained.lagrangian(
    ...     jnp.array([[1.], [0.]]), jnp.zeros((2, 1)), jnp.zeros((2, 1)), jnp.ones((2, 1), bool),
    ...     jnp.ones(2, bool), thresholds=(.75,), rate=4.)
    >>> rewards_BT.round(2).ravel(), state["multiplier_E"]
    (Array([ 0.35, -0.35], dtype=float32), Array([0.25], dtype=float32))
  """
  if len(thresholds) != scores_BE.shape[1]:
    raise ValueError(f"thresholds={thresholds!r}: {scores_BE.shape[1]} numbers, one for each "
                     "verifier in verifier.scores.")
  squash = jax.nn.sigmoid if constraint == "at_least" else jnp.tanh
  weight_E, slopes = jax.jvp(squash, (multiplier_E,), (jnp.ones_like(multiplier_E),))
  white_BE = jax.vmap(masked.whiten, in_axes=(1, None), out_axes=1)(scores_BE, learn_B)
  kl_BT = masked.where_valid(old_logps_BT - ref_logps_BT, learn_BT)
  kl_B = jnp.sum(kl_BT, axis=1)
  scale = jax.lax.rsqrt(masked.var(kl_B, learn_B) + 1e-8)
  centred_BT = kl_BT - masked.where_valid(masked.mean(kl_B, learn_B), masked.last(learn_BT))
  paid_B = jnp.sum(weight_E[None] * white_BE, axis=1)
  rewards_BT = (masked.where_valid(paid_B[:, None], masked.last(learn_BT))
                - (len(thresholds) - jnp.sum(weight_E)) * scale * centred_BT)
  above_E = masked.mean(scores_BE, learn_B[:, None], axis=0) - jnp.asarray(thresholds)
  moved_E = momentum * velocity_E + slopes * above_E
  has_any = jnp.any(learn_B)
  return rewards_BT, {f"weight_{e}": weight_E[e] for e in range(len(thresholds))}, dict(
      multiplier_E=jnp.where(has_any, multiplier_E - rate * moved_E, multiplier_E),
      velocity_E=jnp.where(has_any, moved_E, velocity_E))
