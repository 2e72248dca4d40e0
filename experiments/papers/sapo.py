"""Right completions are rare at every length, eight passes of large steps over every
batch. The gate against the two clips that it replaces."""
import numpy as np

from configs.papers import sapo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "late accuracy of SAPO less that of the better of GSPO and GRPO"
REVISED = "both arms ended near 1"
OTHERS = (dict(name="sequence.gspo", clip_low=3e-4, clip_high=4e-4),
          dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2))


def effects(seeds):
  world, c = sparse.endings(), tabular.changed(sapo.get_config(), learner__epochs=8)
  accuracy = lambda c: sparse.late(world.learned(c, seeds, steps=30, lr=40.0))
  return accuracy(c) - max(
      (accuracy(tabular.changed(c, learner__loss=x)) for x in OTHERS), key=np.mean)
