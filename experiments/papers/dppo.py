"""Policies that start far from uniform, so that most right completions have rare tokens;
eight passes over every batch. A limit on how far a probability moves against one on its
ratio."""
from configs.papers import dppo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy with the limit on probabilities less that with the clip of ratios"
TOKEN = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)


def effects(seeds):
  world = sparse.rare(spread=3.0)
  c = tabular.changed(dppo.get_config(), learner__epochs=8, rollouts__max_tokens=3)
  accuracy = lambda c: world.learned(c, seeds, steps=100, lr=40.0)["accuracy"][:, -1]
  return accuracy(c) - accuracy(tabular.changed(c, learner__loss=TOKEN))
