"""Chains (experiments/worlds/chains.py): fill is scored almost like work.

Scores of steps, of which the end is none, are added to the verdict, as they are or
clipped and differenced. Their weight is 2 instead of 0.02, so that going on to the
limit of five steps pays more than a right answer, as with hundreds of steps it does.
"""
from configs.papers import clip_delta
from experiments.worlds import chains
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("accuracy learned with step scores clipped and differenced less that "
           "with them as they are")
REVISED = "going on never paid more than a right answer"


def effects(seeds):
  def accuracy(kind):
    c = tabular.changed(clip_delta.get_config(), rewards__process__coef=2.0,
                        rewards__process__kind=kind)
    return chains.accuracy(c, seeds, judge=chains.judge_work)[:, -1]

  return accuracy("clip_delta") - accuracy("raw")
