"""Chains (experiments/worlds/chains.py) of up to five tokens with fill that does nothing;
policies that start unevenly, so that they are surer of some completions."""
import jax.numpy as jnp

from configs.papers import conf_clip
from experiments.worlds import chains
from experiments.worlds import tabular

CLAIM = 1
MEASURE = ("tokens of a completion learned from verdicts less those from clipped "
           "confidence")


def effects(seeds):
  world, start = chains.WORLD, lambda key: chains.WORLD.start(key, 1.0)
  length_L = jnp.asarray(world.leaves[1].sum(axis=1))

  def length(c):
    found, _ = tabular.train(
        c, world, chains.judge, lambda x: dict(length=world.expected_P(x, length_L).mean()),
        seeds=seeds, steps=300, lr=10.0, start=start)
    return found["length"][:, -1]

  confidence = conf_clip.get_config()
  return length(tabular.changed(confidence, rewards__outcome=dict(
      name="outcome.verdict", coef=1.0))) - length(confidence)
