"""Simulates rare right completions of uneven probability
(environments/sparse.py) with four passes over every batch. The arms are CISPO
and DAPO's clip: PPO's clip removes the gradient of tokens that have become more likely,
CISPO does not. The accuracy of CISPO is compared with that of the clip after twice as
many steps.
"""
from configs.papers import cispo
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy of CISPO after 10 steps minus that of DAPO's clip after 20 steps"
MARGIN, RATE = 0.05, 20.0
FIRST = ("opposite", "both arms ended with an accuracy near 1")
DAPO = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.28)


def arms():
  problem, c = sparse.rare(spread=2.0), tabular.changed(cispo.get_config(), learner__epochs=4)
  return (problem.arms({"CISPO": c}, "accuracy", steps=10)
          | problem.arms({"DAPO's clip": tabular.changed(c, learner__loss=DAPO)}, "accuracy",
                         steps=20))
