"""What changes between two steps besides the models that learn."""
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from rlx.core import records
from rlx.core.options import key
from rlx.learner import optimizer, reference, sharding
from rlx.losses import divergence


@dataclasses.dataclass(frozen=True, kw_only=True)
class EndStep:
  """The stage that ends a step: the KL coefficient and the state of methods in each, and at their
  intervals the sampler's copy of the policy and the policy's reference.

  The former two stay what they were if an update of the step was not finite, and was skipped.
  """
  mesh: jax.sharding.Mesh
  optimizer: optimizer.Optimizer             # of the policy
  completions: int                           # completions per step, P * G
  sampler_every: int = key("rollouts.sync_every")
  reference_every: int = key("kl.sync_every")
  reference_mix: float = key("kl.sync_mix")
  resets_optimizer: bool = key("kl.reset_optimizer")
  kl_target: float | None = key("kl.target")
  kl_horizon: int = key("kl.horizon")

  def __call__(self, state: records.TrainState, metrics: dict,
               method_state: Any) -> records.TrainState:
    """The state of the next step, from the metrics of this one.

    Args:
      method_state: of Placed, that of the next step.
    """
    before = dict(kl_coef=state.kl_coef, method_state=state.method_state)
    after = dict(kl_coef=self._kl_coef(state, metrics), method_state=method_state)
    if self.kl_target is not None or method_state is not None:
      after = self._settle([x for name, x in metrics.items() if name.endswith("/nonfinite")],
                           before, after)
    state = state.replace(step=int(state.step) + 1, **after)
    if state.sampler is not None and state.step % self.sampler_every == 0:
      state = state.replace(sampler=jax.tree.map(jnp.copy, state.policy))
    if not self.reference_every or state.step % self.reference_every: return state
    state = state.replace(kl_reference=reference.move(
        state.kl_reference, state.policy, mix=self.reference_mix))
    if not self.resets_optimizer: return state
    places = jax.tree.map(lambda x: x.sharding, state.policy_opt)  # Also in the host's memory.
    opt_state = sharding.compute_sharded(self.optimizer.init, state.policy, self.mesh)
    return state.replace(policy_opt=jax.device_put(opt_state, places))

  @functools.cached_property
  def _settle(self) -> jax.stages.Wrapped:
    def settle(nonfinite: list[jax.Array], before: Any, after: Any) -> Any:
      is_kept = sum(nonfinite, jnp.float32(0)) == 0
      return jax.tree.map(lambda old, new: jnp.where(is_kept, new, old), before, after)
    return jax.jit(settle, out_shardings=jax.NamedSharding(self.mesh, jax.P()))

  def _kl_coef(self, state: records.TrainState, metrics: dict) -> jax.Array:
    if self.kl_target is None: return state.kl_coef
    return divergence.adaptive_coef(state.kl_coef, metrics["policy/kl_ref"], target=self.kl_target,
                                    horizon=self.kl_horizon, count=self.completions)
