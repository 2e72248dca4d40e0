"""The overoptimised environment of reward_models, for 400 steps: the config's even mix of
one reward model and the worst of five against that one alone.

Its heads that know their own spread are left out: the nominal one is the first.
"""
from configs.papers import brme
from experiments.environments import reward_models
from experiments.environments import tabular

CLAIM = 0
MEASURE = "gold score over 400 steps with the worst of five mixed in less without"
MARGIN, RATE = 0.1, 10.0
FIRST = ("not recorded", "one reward model was not overoptimised")


def arms():
  return reward_models.arms({
      "with the worst": brme.get_config(),
      "one model": tabular.changed(brme.get_config(), rewards__nominal__coef=1.0,
                                   rewards__worst__coef=0.0),
  }, tabular.mean("gold"))
