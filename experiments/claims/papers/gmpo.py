"""Simulates rare right completions of uneven probability
(environments/sparse.py) with four passes over every batch. The arms are GMPO
and the clip of token ratios at 0.2; their entropies are compared where both have the same
accuracy. Learning rates are tuned for the accuracy.
"""
from configs.papers import gmpo
from experiments.claims.environments import sparse, tabular

MEASURE = ("entropy at an accuracy of 0.7, or the highest that both reach: GMPO minus the clip of "
           "tokens")
MARGIN, RATE = 0.1, 20.0
FIRST = ("not seen", "entropy was not compared at an accuracy that both reach")
TOKEN = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
compare = sparse.matched


def arms():
  problem, c = sparse.rare(spread=2.0), tabular.changed(gmpo.get_config(), learner__epochs=4)
  return problem.arms({"GMPO": c, "token ratios": tabular.changed(c, learner__loss=TOKEN)},
                      sparse.with_entropy, steps=150)
