"""Simulates initial policies far from uniform (environments/sparse.py), so
that most right completions have rare tokens, with eight passes over every batch. One arm
limits how far the probability of a token moves, the other clips its ratio; the accuracies
are compared.
"""
from configs.papers import dppo
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy with the limit on probabilities minus that with the clip of ratios"
MARGIN, RATE = 0.05, 40.0
FIRST = ("not seen", None)
TOKEN = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)


def arms():
  problem = sparse.rare(spread=3.0)
  c = tabular.changed(dppo.get_config(), learner__epochs=8, rollouts__max_tokens=3)
  return problem.arms({"probabilities": c, "ratios": tabular.changed(c, learner__loss=TOKEN)},
                      "accuracy", steps=60)
