"""Chains (experiments/worlds/chains.py) under PPO on an aggregate of step scores alone, no
verdicts. The product pays for few steps, the others do not; right answers have the
largest mean and, among those that work, the largest least score.

Above 0 if what aggregates matters more than which seed it is.
"""
import numpy as np

from configs.papers import rsbs
from experiments.worlds import chains
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("range of accuracy over prod, min, mean and max less the mean range of "
           "one over seeds")
KINDS = ("prod", "min", "mean", "max")


def effects(seeds):
  accuracy_KI = np.stack([
      chains.accuracy(tabular.changed(rsbs.get_config(), rewards__process__kind=kind),
                      seeds, steps=200)[:, -1] for kind in KINDS])
  return np.ptp(accuracy_KI, axis=0) - np.ptp(accuracy_KI, axis=1).mean()
