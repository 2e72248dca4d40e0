"""The overoptimised world of reward_models: five reward models with the same pairs, a
quarter of them flipped, and starts of their own.

UWO of the five with the config's weight and KL against the first of them alone, after
equal steps.
"""
from configs.papers import rm_ens
from experiments.worlds import reward_models
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "gold score learned from UWO of five reward models less that from one of them"
REVISED = "one reward model was not overoptimised"


def effects(seeds):
  def gold(**outcome):
    c = tabular.changed(rm_ens.get_config(), rewards__outcome=dict(
        name="shaping.ensemble", coef=1.0, **outcome))
    return reward_models.gold(c, seeds=seeds)[:, -1]

  return gold(kind="uwo") - gold(kind="nominal_min", weight=1.0)
