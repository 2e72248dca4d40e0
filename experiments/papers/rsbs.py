"""Chains (experiments/environments/chains.py) under PPO on an aggregate of step scores alone, no
verdicts: the product, as in the paper, against the others. Right answers have the
largest mean and, among those that work, the largest least score.

Above 0 if the aggregate matters more than which seed it is: how far the arms are apart
less how far two seeds of an arm are.
"""
import numpy as np

from configs.papers import rsbs
from experiments.environments import chains
from experiments.environments import tabular

CLAIM = 0
MEASURE = "distance in accuracy of the product from the other aggregate less that of two seeds"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", "called an illustration until, at tuned rates, it came out otherwise")
OTHER = 10**6  # Added to a seed: that of another run of the arm.


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
