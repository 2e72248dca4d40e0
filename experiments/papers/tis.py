"""A quantised sampler: its logits are the policy's, rounded to multiples of 2. Rare
right completions, four passes over every batch; with the truncated weight and
without."""
import jax.numpy as jnp

from configs.papers import tis
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy with the weight less that without, sampled from rounded logits"
REVISED = "both arms ended near 1 (it was confirmed)"


def effects(seeds):
  world = sparse.rare()
  c = tabular.changed(tis.get_config(), learner__epochs=4)
  accuracy = lambda c: world.learned(
      c, seeds, steps=20, lr=20.0,
      sampler=lambda key, logits_PNV: 2 * jnp.round(logits_PNV / 2))["accuracy"][:, -1]
  return accuracy(c) - accuracy(tabular.changed(c, learner__behaviour=dict(name=None)))
