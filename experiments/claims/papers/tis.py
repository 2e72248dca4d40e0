"""The sampler is quantised: its logits are the policy's, rounded to multiples of 2. A tenth of the
completions is right, and each batch is used for four passes. Training with the truncated weight
is compared with training without it, by the accuracy at the end.
"""
import jax.numpy as jnp

from configs.papers import tis
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy with the weight minus that without it, with samples from rounded logits"
MARGIN, RATE = 0.05, 20.0
FIRST = ("confirmed", "both arms ended with an accuracy near 1")


def arms():
  problem, c = sparse.rare(), tabular.changed(tis.get_config(), learner__epochs=4)
  without = tabular.changed(c, learner__rollout_correction=dict(name=None))
  return problem.arms({"weighted": c, "unweighted": without}, "accuracy", steps=20,
                      sampler=lambda key, logits_PNV: 2 * jnp.round(logits_PNV / 2))
