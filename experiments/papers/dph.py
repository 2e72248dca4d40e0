"""Twelve prompts of sixteen answers share a linear policy: six are mostly solved at the
start, six have one right answer that is unlikely.

Exact gradients. RL raises the expected verdict of the six hard prompts; on the solved
ones there is only the divergence from the start, under the start's own answers that
were right. Both arms have the paper's 0.05 of it and differ in its generator.
"""
import jax
import jax.numpy as jnp

from configs.papers import dph
from rlx.losses import divergence

CLAIM = 0
MEASURE = "accuracy on solved prompts, forward KL less reverse KL to the start"
STEPS, LR = 1000, 1.0


def effects(seeds):
  coef = dph.get_config().learner.auxiliary.coef

  def accuracies(key, kind):
    keys = jax.random.split(key, 3)
    features_PD = jax.random.normal(keys[0], (12, 6)) / 6**0.5
    start_DV = 3 * jax.random.normal(keys[1], (6, 16))
    base_PV = jax.nn.log_softmax(features_PD @ start_DV)
    best_PV = base_PV >= jax.lax.top_k(base_PV, 4)[0][:, -1:]
    rare_P = jnp.argsort(base_PV, axis=1)[:, 4]
    right_PV = best_PV.at[6:].set(jnp.arange(16) == rare_P[6:, None])
    old, hard = slice(0, 6), slice(6, 12)

    def loss(w_DV):
      logps_PV = jax.nn.log_softmax(features_PD @ w_DV)
      reward = jnp.sum(jnp.exp(logps_PV[hard]) * right_PV[hard], axis=1).mean()
      kept_PV = divergence.rehearsal(logps_PV[old], base_PV[old], right_PV[old], kind=kind)
      return -reward + coef * jnp.sum(jnp.exp(base_PV[old]) * kept_PV, axis=1).mean()

    w_DV, _ = jax.lax.scan(lambda w, _: (w - LR * jax.grad(loss)(w), None), start_DV,
                           length=STEPS)
    probs_PV = jax.nn.softmax(features_PD @ w_DV)
    return jnp.sum(probs_PV * right_PV, axis=1)[old].mean()

  def of(kind):
    return jax.jit(jax.vmap(lambda s: accuracies(jax.random.key(s), kind)))(
        jnp.asarray(seeds))

  return of("forward") - of("reverse")
