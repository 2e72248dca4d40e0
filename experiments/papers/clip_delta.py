"""Simulates the chains of experiments/environments/chains.py, in which fill is scored
almost as high as work.

The scores of steps are added to the verdict; the end of a completion is not a step. One
arm adds them clipped and differenced, the other as they are, and the learned accuracies
are compared.
"""
import functools

from configs.papers import clip_delta
from experiments.environments import chains
from experiments.environments import tabular

CLAIM = 0
MEASURE = ("accuracy learned with step scores clipped and differenced less that "
           "with them as they are")
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "going on never paid more than a right answer")
DIFFERS = {"rewards.process.coef": "2, not 0.02: going on for five steps has to pay more than a "
                                   "right answer, as with hundreds of steps it does"}
ILLUSTRATION = ("The weight makes five steps of fill pay more than a right answer where scores are "
                "added as they are, and differences bound what they can pay.")


def arms():
  environment = functools.partial(chains.environment, scores_end=False)
  def config(kind):
    return tabular.changed(clip_delta.get_config(), rewards__process__coef=2.0,
                           rewards__process__kind=kind)
  return chains.arms({"clipped and differenced": config("clip_delta"),
                      "as they are": config("raw")}, "accuracy", environment=environment)
