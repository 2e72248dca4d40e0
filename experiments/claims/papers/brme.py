"""Simulates the overoptimised environment of environments/reward_models.py
for 400 steps. One arm learns from the config's even mix of one reward model and the worst
of five, the other from that one reward model alone. The gold score is averaged over
training.

The paper's heads that predict their own spread are left out: the nominal model is the
first of the five.
"""
from configs.papers import brme
from experiments.claims.environments import reward_models, tabular

MEASURE = ("gold score over 400 steps with the worst of five reward models mixed in minus that "
           "without it")
MARGIN, RATE = 0.1, 10.0
FIRST = ("not recorded", "the single reward model was not overoptimised")


def arms():
  c = brme.get_config()
  alone = tabular.changed(c, rewards__nominal__coef=1.0, rewards__worst__coef=0.0)
  return reward_models.arms({"with the worst": c, "one model": alone}, tabular.mean("gold"))
