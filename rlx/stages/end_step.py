"""What changes between two steps besides the models that learn."""
import dataclasses

import jax
import jax.numpy as jnp

from rlx.core import records
from rlx.core.options import key
from rlx.learner import optimizer, reference, sharding
from rlx.losses import divergence


@dataclasses.dataclass(frozen=True, kw_only=True)
class EndStep:
  """The stage that ends a step: the KL coefficient and the running spread of rewards in each,
  and at their intervals the sampler's copy of the policy and the policy's reference."""
  mesh: jax.sharding.Mesh
  optimizer: optimizer.Optimizer             # of the policy
  completions: int                           # completions per step, P * G
  sampler_every: int = key("rollouts.sync_every")
  reference_every: int = key("kl.sync_every")
  reference_mix: float = key("kl.sync_mix")
  resets_optimizer: bool = key("kl.reset_optimizer")
  kl_target: float | None = key("kl.target")
  kl_horizon: int = key("kl.horizon")

  def __call__(self, state: records.TrainState, metrics: dict) -> records.TrainState:
    """The state of the next step, from the metrics of this one."""
    state = state.replace(step=int(state.step) + 1, kl_coef=self._kl_coef(state, metrics),
                          reward_std=metrics.get("rewards/std_ema"))
    if state.sampler is not None and state.step % self.sampler_every == 0:
      state = state.replace(sampler=jax.tree.map(jnp.copy, state.policy))
    if not self.reference_every or state.step % self.reference_every: return state
    state = state.replace(kl_reference=reference.move(
        state.kl_reference, state.policy, mix=self.reference_mix))
    if not self.resets_optimizer: return state
    places = jax.tree.map(lambda x: x.sharding, state.policy_opt)  # Also in the host's memory.
    opt_state = sharding.compute_sharded(self.optimizer.init, state.policy, self.mesh)
    return state.replace(policy_opt=jax.device_put(opt_state, places))

  def _kl_coef(self, state: records.TrainState, metrics: dict) -> jax.Array:
    if self.kl_target is None: return state.kl_coef
    return divergence.adaptive_coef(state.kl_coef, metrics["policy/kl_ref"], target=self.kl_target,
                                    horizon=self.kl_horizon, count=self.completions)
