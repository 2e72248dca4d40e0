"""A sampler that routes about a tenth of the nodes otherwise than the trainer, others at
every step: there its logits have noise of about 5, elsewhere of 0.1. Rare right
completions, four passes over every batch. What is out of bounds masked against
truncated."""
import jax
import jax.numpy as jnp

from configs.papers import icepop
from experiments.environments import sparse
from experiments.environments import tabular

CLAIM = 0
MEASURE = "late accuracy with the mask less that with the truncated weight"
MARGIN, RATE = 0.05, 20.0
FIRST = ("opposite", None)
PROBLEM = sparse.rare()


def environment(key):
  keys = jax.random.split(key)
  share, low, high = tabular.around(keys[0], [0.1, 0.1, 5.0])

  def routed_otherwise(key, logits_PNV):
    keys = jax.random.split(key)
    is_other_PN = jax.random.uniform(keys[0], logits_PNV.shape[:2]) < share
    noise_PNV = jax.random.normal(keys[1], logits_PNV.shape)
    return logits_PNV + jnp.where(is_other_PN, high, low)[..., None] * noise_PNV

  return PROBLEM.environment(keys[1])._replace(sampler=routed_otherwise)


def arms():
  c = tabular.changed(icepop.get_config(), learner__epochs=4)
  truncated = dict(name="rollout_correction.tis", cap=2.0, level="token")
  return tabular.arms({
      "mask": c,
      "truncation": tabular.changed(c, learner__rollout_correction=truncated),
  }, PROBLEM.tree, environment, sparse.late, steps=30)
