"""Rare right completions: GPG against all of GRPO, with clip, KL and reference. Tokens
are averaged alike, as completions have one length."""
from configs.papers import gpg
from configs.papers import grpo
from experiments.environments import sparse

CLAIM = 0
MEASURE = "accuracy of GPG less that of GRPO, 30 steps"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not recorded", "both arms ended near 1")


def arms():
  world = sparse.rare()
  def end(c):
    return lambda seeds, rates: world.learned(c, seeds, rates, steps=30)["accuracy"][:, -1]
  return {"GPG": end(gpg.get_config()), "GRPO": end(grpo.get_config())}
