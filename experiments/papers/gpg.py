"""Rare right completions: GPG against all of GRPO, with clip, KL and reference. Tokens
are averaged alike, as completions have one length."""
from configs.papers import gpg
from configs.papers import grpo
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy of GPG less that of GRPO, 30 steps"
REVISED = "both arms ended near 1"


def effects(seeds):
  world = sparse.rare()
  accuracy = lambda c: world.learned(c, seeds, steps=30, lr=20.0)["accuracy"][:, -1]
  return accuracy(gpg.get_config()) - accuracy(grpo.get_config())
