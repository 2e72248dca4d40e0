"""UWO of five reward models against the first of them alone, where one is overoptimised.

The environment is that of environments/reward_models.py. The five reward models
are trained from different initial weights on the same pairs, a quarter of which have the
wrong preference. UWO has the config's weight, and both arms have its KL coefficient. The gold
score after 200 steps is measured.
"""
from configs.papers import rm_ens
from experiments.claims.environments import reward_models, tabular

MEASURE = "gold score learned from UWO of five reward models minus that from one of them"
MARGIN, RATE = 0.1, 10.0
FIRST = ("not recorded", "the single reward model was not overoptimised")
ONE = dict(name="shaping.ensemble", coef=1.0, kind="nominal_min", weight=1.0)


def arms():
  c = rm_ens.get_config()
  return reward_models.arms(
      {"UWO of five": c, "one model": tabular.changed(c, rewards__outcome=ONE)},
      "gold", steps=200)
