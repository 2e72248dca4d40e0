"""A sampler whose logits are the policy's with noise of 1, other at every step; right
completions are rare at every length, four passes over every batch. Weights of whole
completions, masked, against those of tokens, truncated."""
from configs.papers import seq_mis
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "late accuracy with weights of completions less that with those of tokens"
TIS = dict(name="behaviour.tis", cap=2.0, level="token")


def effects(seeds):
  world, c = sparse.endings(), tabular.changed(seq_mis.get_config(), learner__epochs=4)
  accuracy = lambda c: sparse.late(world.learned(
      c, seeds, steps=60, lr=30.0, sampler=sparse.noisy))
  return accuracy(c) - accuracy(tabular.changed(c, learner__behaviour=TIS))
