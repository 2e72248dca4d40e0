"""Rare right completions of uneven probability, four passes over every batch. GMPO
against the clip of token ratios at 0.2, compared where both have the same accuracy."""
from configs.papers import gmpo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "entropy when the accuracy reaches 0.7, GMPO less the clip of token ratios"
TOKEN = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)


def effects(seeds):
  world = sparse.rare(spread=2.0)
  c = tabular.changed(gmpo.get_config(), learner__epochs=4)
  entropy = lambda c: sparse.at_accuracy(
      world.learned(c, seeds, steps=150, lr=20.0), 0.7)
  return entropy(c) - entropy(tabular.changed(c, learner__loss=TOKEN))
