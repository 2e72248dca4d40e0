"""PPO's clipped loss against that of StableReinforce on a batch with one extreme ratio.

One token of a failed completion has become e^100 times likelier. The size of both losses is
measured. All losses of rlx cap this ratio at e^20, so that PPO's loss is large in this check
and not infinite.
"""
import types

import jax
import jax.numpy as jnp

from configs.papers import r1_reward
from experiments.environments import sparse
from experiments.environments import tabular
from rlx.build import methods as build_methods
from rlx.build import updates
from rlx.stages import update_policy

CLAIM = 0
MEASURE = "log10 of PPO's loss minus that of StableReinforce's loss, at a log-ratio of 100"
MARGIN = 0.3
FIRST = ("confirmed", None)
ILLUSTRATION = ("The ratio is chosen here, and only PPO's loss for a failed completion grows with "
                "it.")
PPO = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)


def effects(seeds):
  problem = sparse.rare()

  def size(c, seed):
    keys = jax.random.split(jax.random.key(seed))
    env = problem.environment(keys[0])
    batch = problem.tree.sample(keys[1], env.start, c.rollouts.per_prompt)
    logps_BT, entropy_BT = tabular.logps(env.start, batch)
    before_BT = logps_BT.at[0, 0].add(-100.0)
    resolved = build_methods.resolve_methods(c)
    scored = tabular.record(
        batch.mask_BT, env.verify(batch, key=None, logits_PNV=None)["outcome_B"].at[0].set(0.0),
        group=c.rollouts.per_prompt, logps_BT=logps_BT, entropy_BT=entropy_BT,
        old_logps_BT=before_BT, ref_logps_BT=before_BT)
    scored, _ = updates.advantage_of(c, resolved)(
        types.SimpleNamespace(kl_coef=c.kl.coef, step=0), scored)
    loss, _ = update_policy.policy_loss(resolved, updates.policy_loss_options(c))(
        scored, jnp.full(len(before_BT), c.kl.coef))
    return jnp.log10(jnp.abs(loss.mean()))

  def sizes(c):
    return jax.jit(jax.vmap(lambda seed: size(c, seed)))(jnp.asarray(seeds))

  c = r1_reward.get_config()
  return {"PPO": sizes(tabular.changed(c, learner__loss=PPO)) - sizes(c)}
