"""Rare right completions. GRPO against the same with PPO's estimator, the values of
all nodes learned along. To reach is to have 95% of the accuracy."""
from configs.papers import grpo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy of GRPO less 95% of that with a learned critic and GAE, 30 steps"
REVISED = "both arms ended near 1 (it was confirmed)"
CRITIC = dict(total=dict(name="temporal.gae", lam=0.95), whiten=True)


def effects(seeds):
  world, c = sparse.rare(), grpo.get_config()
  accuracy = lambda c: world.learned(c, seeds, steps=30, lr=20.0)["accuracy"][:, -1]
  return accuracy(c) - 0.95 * accuracy(tabular.changed(c, advantages=CRITIC))
