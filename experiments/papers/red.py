"""Chains (experiments/environments/chains.py), verdicts alone: all of a verdict spread by what a
table of values expects (beta 1), or all of it on the last token (beta 0)."""
from configs.papers import red
from experiments.environments import chains
from experiments.environments import tabular

CLAIM = 1
MEASURE = "mean accuracy over 300 steps with the verdict redistributed less that with it at the end"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)


def arms():
  def config(share):
    return tabular.changed(red.get_config(), rewards__outcome__share=share)
  return chains.arms({"redistributed": config(1.0), "at the end": config(0.0)},
                     tabular.mean("accuracy"))
