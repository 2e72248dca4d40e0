"""Chains (experiments/worlds/chains.py): fill is scored almost like work.

Scores of steps, of which the end is none, are added to the verdict where that is 1, or,
with the gate at 0, always. Their weight is 2 instead of 1, so that going on to the
limit of five steps pays more than a right answer, as in many turns it does.
"""
from configs.papers import gra
from experiments.worlds import chains
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("accuracy learned with step scores behind the verdict's gate less that "
           "with them always")
REVISED = "going on never paid more than a right answer"


def effects(seeds):
  def accuracy(theta):
    c = tabular.changed(gra.get_config(), rewards__process__theta=theta,
                        rewards__process__coef=2.0)
    return chains.accuracy(c, seeds, judge=chains.judge_work)[:, -1]

  return accuracy(0.5) - accuracy(0.0)
