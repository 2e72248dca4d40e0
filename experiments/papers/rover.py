"""A tenth of 64 completions is right, so that a prompt has several answers, all alike
to the policy at first: what is lost of them, training has lost.

Both arms take four steps on a batch, with GRPO's advantages: regression on the values
of a uniform policy against PPO's clipped objective. Distinct right completions among
16 samples, in expectation. The temperature is left out.
"""
import jax.numpy as jnp

from configs.papers import rover
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "distinct right completions in 16 samples with ROVER less those with PPO's loss"
REVISED = "both arms kept about one of the right completions"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  right_PL = verdicts.drawn(world, 0.1)

  def measure(logits_PNV):
    p_PL = jnp.exp(world.leaf_logps(logits_PNV))
    return dict(distinct=jnp.sum(right_PL * (1 - (1 - p_PL) ** 16), axis=1).mean())

  def distinct(**changes):
    c = tabular.changed(rover.get_config(), rollouts__per_prompt=8, learner__epochs=4,
                        **changes)
    found, _ = tabular.train(c, world, verdicts.judge(world, right_PL), measure, seeds=seeds, steps=200, lr=5.0)
    return found["distinct"][:, -1]

  return distinct() - distinct(
      learner__loss=dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2))
