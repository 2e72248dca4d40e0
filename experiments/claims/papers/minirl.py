"""A tenth of 64 completions are right, about three verdicts in ten are wrong, the logits of the
sampler have noise with a standard deviation of 0.3, and each batch is used for eight passes.
MiniRL with its clip is compared with MiniRL without it.
"""
import jax

from configs.papers import minirl
from experiments.claims.environments import tabular, verdicts

CLAIM = 1
MEASURE = "accuracy with the clip minus that without it, with eight passes over each batch"
MARGIN, RATE = 0.05, 80.0
FIRST = ("not recorded",
         "both arms started near 1; in a second version the seeds differed more than the arms")


def arms():
  tree = tabular.Tree(prompts=16, vocab=4, length=3)
  drawn = verdicts.environment(tree, 0.1, flip=0.3)
  sampler = lambda key, x: x + 0.3 * jax.random.normal(key, x.shape)
  environment = lambda key: drawn(key)._replace(sampler=sampler)

  c = tabular.changed(minirl.get_config(), learner__epochs=8)
  unclipped = tabular.changed(c, learner__loss__clip_low=1.0, learner__loss__clip_high=1e6)
  return tabular.arms({"clip": c, "no clip": unclipped}, tree, environment, "accuracy", steps=100)
