"""Rare right completions, ten passes of large steps over every batch, of four completions
a prompt, so that a batch says little. A clip of 0.2 against one of 0.1, of 0.3 and none;
penalties on KL are left out."""
import numpy as np

from configs.papers import ppo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy with a clip of 0.2 less that of the best of 0.1, 0.3 and none"
REVISED = "both arms ended near 1 (it was opposite)"
OTHERS = ((0.1, 0.1), (0.3, 0.3), (1.0, 1e6))  # The last never acts: ratios are > 0.


def effects(seeds):
  world = sparse.rare()

  def accuracy(low, high):
    c = tabular.changed(ppo.get_config(), learner__epochs=10, rollouts__per_prompt=4,
                        learner__loss__clip_low=low, learner__loss__clip_high=high)
    return world.learned(c, seeds, steps=30, lr=100.0)["accuracy"][:, -1]

  return accuracy(0.2, 0.2) - max((accuracy(*x) for x in OTHERS), key=np.mean)
