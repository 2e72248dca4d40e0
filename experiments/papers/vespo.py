"""Right completions are rare at every length, sixteen passes of large steps over every
batch. VESPO against the clip of token ratios and the ratio normalised by length."""
import numpy as np

from configs.papers import vespo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "late accuracy of VESPO, 16 passes, less that of the better of GRPO and GSPO"
OTHERS = (dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2),
          dict(name="sequence.gspo", clip_low=3e-4, clip_high=4e-4))


def effects(seeds):
  world, c = sparse.endings(), tabular.changed(vespo.get_config(), learner__epochs=16)
  accuracy = lambda c: sparse.late(world.learned(c, seeds, steps=20, lr=40.0))
  return accuracy(c) - max(
      (accuracy(tabular.changed(c, learner__loss=x)) for x in OTHERS), key=np.mean)
