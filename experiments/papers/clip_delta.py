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
MEASURE = "accuracy with step scores clipped and differenced minus that with the scores as they are"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "further steps never had a higher reward than a right answer")
DIFFERS = {
    "rewards.process.coef": "2 instead of 0.02: five further steps must have a higher reward than "
        "a right answer, as hundreds of steps do in the paper"}
ILLUSTRATION = ("The step scores have a weight with which five steps of fill have a higher reward "
                "than a right answer if scores are added as they are. Differences limit this "
                "reward.")


def arms():
  environment = functools.partial(chains.environment, scores_end=False)
  def config(kind):
    return tabular.changed(clip_delta.get_config(), rewards__process__coef=2.0,
                           rewards__process__kind=kind)
  return chains.arms({"clipped and differenced": config("clip_delta"),
                      "as they are": config("raw")}, "accuracy", environment=environment)
