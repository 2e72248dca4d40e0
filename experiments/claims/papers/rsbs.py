"""PPO is trained on chains (environments/chains.py) with an aggregate of the step
scores as its only reward, without verdicts. The product, which the paper uses, is compared with
the minimum, the mean and the maximum. In this environment right answers have the largest mean
and, among the completions that do any work, the largest minimum of step scores.

The measure is the distance in accuracy between two arms less the distance between two seeds of
the same arm. It is above 0 if the choice of the aggregate matters more than the seed.
"""
import numpy as np

from configs.papers import rsbs
from experiments.claims.environments import chains, tabular

MEASURE = ("distance in accuracy between the product and another aggregate minus that between two "
           "seeds")
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", "it was taken to follow from the formula until rates were tuned")
OTHER = 10**6  # Added to a seed to get the seed of a second run of the same arm.


def arms():
  def twice(kind):
    c = tabular.changed(rsbs.get_config(), rewards__process__kind=kind)
    arm = chains.arms({kind: c}, "accuracy", steps=100)[kind]
    def both(seeds, rates):
      accuracy_I2 = arm(np.append(seeds, seeds + OTHER), np.tile(rates, 2)).reshape(2, -1).T
      return accuracy_I2, accuracy_I2.mean(axis=1)
    return both
  return {kind: twice(kind) for kind in ("prod", "min", "mean", "max")}


def compare(product_I2, other_I2):
  within_I = sum(np.abs(np.diff(x_I2)[:, 0]) for x_I2 in (product_I2, other_I2)) / 2
  return np.abs(product_I2 - other_I2).mean(axis=1) - within_I
