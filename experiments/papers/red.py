"""Chains (experiments/worlds/chains.py), verdicts alone: all of a verdict spread by what a
table of values expects (beta 1), or all of it on the last token (beta 0)."""
from configs.papers import red
from experiments.worlds import chains
from experiments.worlds import tabular

CLAIM = 1
MEASURE = ("mean accuracy over 300 steps with the verdict redistributed less that "
           "with it at the end")


def effects(seeds):
  def accuracy(beta):
    c = tabular.changed(red.get_config(), rewards__outcome__beta=beta)
    return chains.accuracy(c, seeds).mean(axis=1)

  return accuracy(1.0) - accuracy(0.0)
