"""Simulates the chains of experiments/environments/chains.py, in which fill is scored
almost as high as work.

The scores of steps are added to the verdict; the end of a completion is not a step. One
arm adds them only where the verdict is 1, the other, whose gate is at 0, always. The
learned accuracies are compared.
"""
import functools

from configs.papers import gra
from experiments.environments import chains
from experiments.environments import tabular

CLAIM = 0
MEASURE = ("accuracy with step scores added only where the verdict is 1 minus that with them "
           "always added")
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "further steps never had a higher reward than a right answer")
DIFFERS = {
    "rewards.process.coef": "2 instead of 1: five further steps must have a higher reward than a "
        "right answer, as many turns do in the paper"}
ILLUSTRATION = ("The step scores have a weight with which five steps of fill have a higher reward "
                "than a right answer without the gate. With the gate they have no reward.")


def arms():
  environment = functools.partial(chains.environment, scores_end=False)
  def config(theta):
    return tabular.changed(gra.get_config(), rewards__process__theta=theta,
                           rewards__process__coef=2.0)
  return chains.arms({"gated": config(0.5), "always": config(0.0)},
                     "accuracy", environment=environment)
