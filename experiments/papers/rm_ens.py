"""The overoptimised environment of reward_models: five reward models with the same pairs, a
quarter of them flipped, and starts of their own.

UWO of the five with the config's weight and KL against the first of them alone, after
200 steps.
"""
from configs.papers import rm_ens
from experiments.environments import reward_models
from experiments.environments import tabular

CLAIM = 0
MEASURE = "gold score learned from UWO of five reward models less that from one of them"
MARGIN, RATE = 0.1, 10.0
FIRST = ("not recorded", "one reward model was not overoptimised")
ONE = dict(name="shaping.ensemble", coef=1.0, kind="nominal_min", weight=1.0)


def arms():
  c = rm_ens.get_config()
  return reward_models.arms({
      "UWO of five": c,
      "one model": tabular.changed(c, rewards__outcome=ONE),
  }, "gold", steps=200)
