"""A tenth of the 64 completions of each prompt is right, so that a prompt has several right
completions, all equally likely at the start. Training should not lose any of them.

Both arms take four optimizer steps on every batch and use GRPO's advantages. One regresses on
the values of the uniform policy (ROVER), the other has PPO's clipped objective. Measured is
the expected number of distinct right completions among 16 samples, at the learning rate with
the best accuracy. The sampling temperature of the config is not simulated.
"""
import jax.numpy as jnp

from configs.papers import rover
from experiments.claims.environments import tabular, verdicts

MEASURE = "distinct right completions in 16 samples with ROVER minus those with PPO's loss"
MARGIN, RATE = 0.3, 5.0
FIRST = ("not recorded", "both arms kept about one of the right completions")
TREE = tabular.Tree(prompts=8, vocab=8, length=2)
CLIP = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)


def environment(key):
  right_PL = verdicts.drawn(key, TREE, 0.1)
  def measure(logits_PNV):
    p_PL = jnp.exp(TREE.leaf_logps(logits_PNV))
    return dict(distinct=jnp.sum(right_PL * (1 - (1 - p_PL) ** 16), axis=1).mean(),
                accuracy=jnp.sum(right_PL * p_PL, axis=1).mean())
  return tabular.Environment(verdicts.verifier(TREE, right_PL), measure)


def arms():
  c = tabular.changed(rover.get_config(), learner__epochs=4)
  return tabular.arms({"ROVER": c, "PPO's loss": tabular.changed(c, learner__loss=CLIP)},
                      TREE, environment, ("distinct", "accuracy"), steps=200)
