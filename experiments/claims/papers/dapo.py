"""Simulates rare right completions of uneven probability
(environments/sparse.py) with four passes over every batch. The arms are the
upper clips 0.28 and 0.2; their entropies are compared where both have the same accuracy.
Learning rates are tuned for the accuracy. The penalty on length has no effect in this
environment.
"""
from configs.papers import dapo
from experiments.claims.environments import sparse, tabular

MEASURE = "entropy at an accuracy of 0.7, or the highest that both reach: upper clip 0.28 minus 0.2"
MARGIN, RATE = 0.1, 20.0
FIRST = ("opposite", "the step at which an accuracy is reached was not interpolated")
compare = sparse.matched


def arms():
  problem, c = sparse.rare(spread=2.0), tabular.changed(dapo.get_config(), learner__epochs=4)
  return problem.arms({"0.28": c, "0.2": tabular.changed(c, learner__loss__clip_high=0.2)},
                      sparse.with_entropy, steps=150)
