"""What changes between two steps besides the models that learn."""
import dataclasses
from typing import Callable

import jax
import jax.numpy as jnp

from rlx.core.options import key
from rlx.learner import optimizer
from rlx.learner import reference
from rlx.learner import sharding
from rlx.losses import divergence


@dataclasses.dataclass(frozen=True, kw_only=True)
class Moves:
  """Options of what changes between RL iterations in addition to the models."""
  completions: int                           # completions per step, P * G
  sampler_every: int = key("rollouts.sync_every")
  reference_every: int = key("kl.sync_every")
  reference_mix: float = key("kl.sync_mix")
  resets_optimizer: bool = key("kl.reset_optimizer")
  kl_target: float | None = key("kl.target")
  kl_horizon: float = key("kl.horizon")


def end_step(moves: Moves, mesh: jax.sharding.Mesh, optimizer_: optimizer.Optimizer) -> Callable:
  """Returns a function (state, metrics) -> the state of the next step.

  It updates the KL coefficient and the running spread of rewards in each iteration, and at
  their intervals the sampler's copy of the policy and the policy's reference.
  """
  def kl_coef(state, metrics):
    if moves.kl_target is None: return state.kl_coef
    return divergence.adaptive_coef(
        state.kl_coef, metrics["policy/kl_ref"], target=moves.kl_target,
        horizon=moves.kl_horizon, count=moves.completions)

  def end(state, metrics):
    state = state.replace(step=int(state.step) + 1, kl_coef=kl_coef(state, metrics),
                          reward_std=metrics.get("rewards/std_ema"))
    if state.sampler is not None and state.step % moves.sampler_every == 0:
      state = state.replace(sampler=jax.tree.map(jnp.copy, state.policy))
    if not moves.reference_every or state.step % moves.reference_every: return state
    state = state.replace(kl_reference=reference.moved(
        state.kl_reference, state.policy, mix=moves.reference_mix))
    if not moves.resets_optimizer: return state
    places = jax.tree.map(lambda x: x.sharding, state.policy_opt)  # Also in the host's memory.
    opt_state = sharding.made(optimizer_.init, state.policy, mesh)
    return state.replace(policy_opt=jax.device_put(opt_state, places))

  return end
