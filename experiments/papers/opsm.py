"""A sampler whose logits are the policy's with noise of 1, other at every step, and eight
passes over every batch; right completions are rare at every length. From a sampler that
agrees the mask does nothing: PPO's clip has stopped what was left behind."""
from configs.papers import opsm
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "late accuracy with the mask less that without, off-policy"
REVISED = "PPO's clip left the mask nothing to do"


def effects(seeds):
  world, c = sparse.endings(), tabular.changed(opsm.get_config(), learner__epochs=8)
  accuracy = lambda c: sparse.late(world.learned(
      c, seeds, steps=60, lr=30.0, sampler=sparse.noisy))
  return accuracy(c) - accuracy(tabular.changed(c, learner__behaviour=dict(name=None)))
