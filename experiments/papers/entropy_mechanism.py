"""Rare right completions of uneven probability, four passes over every batch. KL-Cov on
a twentieth of the tokens against none, compared where both have the same accuracy: does
entropy go with the tokens of large covariance?"""
from configs.papers import entropy_mechanism
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "entropy when the accuracy reaches 0.7, KL-Cov less no penalty"
REVISED = "the step that reaches an accuracy is interpolated (it was not seen)"


def effects(seeds):
  world = sparse.rare(spread=2.0)

  def entropy(fraction):
    c = tabular.changed(entropy_mechanism.get_config("kl"), learner__epochs=4,
                        learner__loss__fraction=fraction)
    return sparse.at_accuracy(world.learned(c, seeds, steps=150, lr=20.0), 0.7)

  return entropy(0.05) - entropy(0.0)
