"""Rare right completions. One completion a prompt against learned values, as in the
paper, and against it pairs, half their difference the advantage, from as many
completions. The singles' steps are a quarter: twice as many, and their advantages are
twice as large. To suffice is to have 95% of the accuracy."""
from configs.papers import dro
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy from single completions less 95% of that from pairs"
REVISED = "both arms ended near 1 (it was confirmed)"
VALUES = dict(total=dict(name="temporal.gae"), whiten=False)


def effects(seeds):
  world, c = sparse.rare(), tabular.changed(dro.get_config(), learner__epochs=4)
  accuracy = lambda c, steps, lr: world.learned(
      c, seeds, steps=steps, lr=lr)["accuracy"][:, -1]
  singles = tabular.changed(c, rollouts__per_prompt=1, advantages=VALUES)
  pairs = tabular.changed(c, rollouts__per_prompt=2)
  return accuracy(singles, 80, 10.0) - 0.95 * accuracy(pairs, 40, 40.0)
