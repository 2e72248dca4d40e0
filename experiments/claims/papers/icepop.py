"""The sampler routes about a tenth of the nodes differently from the trainer, and other nodes at
every step: its logits have noise with a standard deviation of about 5 at these nodes and of 0.1
elsewhere. Right completions are rare, and every batch is used for four passes. Masking the
tokens whose ratio is out of bounds is compared with truncating their weight.
"""
import jax
import jax.numpy as jnp

from configs.papers import icepop
from experiments.claims.environments import sparse, tabular

MEASURE = ("accuracy in the second half of training with the mask minus that with the truncated "
           "weight")
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
  return tabular.arms(
      {"mask": c, "truncation": tabular.changed(c, learner__rollout_correction=truncated)},
      PROBLEM.tree, environment, sparse.late, steps=30)
