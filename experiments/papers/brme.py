"""The overoptimised world of reward_models, for 400 steps: the config's even mix of
one reward model and the worst of five against that one alone.

Its heads that know their own spread are left out: the nominal one is the first.
"""
from configs.papers import brme
from experiments.worlds import reward_models
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "gold score over 400 steps with the worst of five mixed in less without"
REVISED = "one reward model was not overoptimised"


def effects(seeds):
  def gold(nominal, worst):
    c = tabular.changed(brme.get_config(), rewards__nominal__coef=nominal,
                        rewards__worst__coef=worst)
    return reward_models.gold(c, seeds=seeds).mean(axis=1)

  return gold(0.5, 0.5) - gold(1.0, 0.0)
