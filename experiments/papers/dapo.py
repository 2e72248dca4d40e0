"""Rare right completions of uneven probability, four passes over every batch. The
upper clip of 0.28 against 0.2, compared where both have the same accuracy. The
penalty on length does nothing here."""
from configs.papers import dapo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "entropy when the accuracy reaches 0.7, upper clip of 0.28 less 0.2"
REVISED = "the step that reaches an accuracy is interpolated (it was opposite)"


def effects(seeds):
  world = sparse.rare(spread=2.0)

  def entropy(high):
    c = tabular.changed(dapo.get_config(), learner__epochs=4,
                        learner__loss__clip_high=high)
    return sparse.at_accuracy(world.learned(c, seeds, steps=150, lr=20.0), 0.7)

  return entropy(0.28) - entropy(0.2)
