"""Rare right completions, eight passes of very large steps over every batch: a token that
a failure shares with a success may be many times likelier before the batch is left. One
large gradient shows in the table for good. No KL: k3 has large gradients of its own."""
import jax.numpy as jnp

from configs.papers import intellect_2
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "log10 of the largest logit after 50 steps, without the cap less with it"
REVISED = "no ratio reached the cap"


def effects(seeds):
  world = sparse.rare()

  def largest(cap):
    c = tabular.changed(intellect_2.get_config(), learner__epochs=8, kl__coef=0.0,
                        learner__loss__ratio_cap=cap)
    found, _ = tabular.train(
        c, world.tree, world.judge, lambda x: dict(largest=jnp.log10(jnp.abs(x).max())),
        seeds=seeds, steps=50, lr=300.0, start=world.start)
    return found["largest"][:, -1]

  return largest(None) - largest(4.0)
