"""A sampler that routes a tenth of the nodes otherwise than the trainer, others at every
step: there its logits have noise of 5, elsewhere of 0.1. Rare right completions, four
passes over every batch. What is out of bounds masked against truncated."""
import jax
import jax.numpy as jnp

from configs.papers import icepop
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "late accuracy with the mask less that with the truncated weight"
TIS = dict(name="behaviour.tis", cap=2.0, level="token")


def routed_otherwise(key, logits_PNV):
  keys = jax.random.split(key)
  is_other_PN = jax.random.uniform(keys[0], logits_PNV.shape[:2]) < 0.1
  noise_PNV = jax.random.normal(keys[1], logits_PNV.shape)
  return logits_PNV + jnp.where(is_other_PN, 5.0, 0.1)[..., None] * noise_PNV


def effects(seeds):
  world, c = sparse.rare(), tabular.changed(icepop.get_config(), learner__epochs=4)
  accuracy = lambda c: sparse.late(world.learned(
      c, seeds, steps=30, lr=20.0, sampler=routed_otherwise))
  return accuracy(c) - accuracy(tabular.changed(c, learner__behaviour=TIS))
