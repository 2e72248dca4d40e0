"""Rare right answers, one completion in 32: five steps, of which any wrong one spoils it.

Both arms take the band of accuracies, whitening and everything else of the published
run, and an accuracy counts as reached when it is first passed. The PRM starts as the
policy and learns online. Its beta is the quickstart's: completions are five tokens.
"""
from configs.papers import prime
from experiments import grid as grids
from experiments.worlds import steps
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("share of the steps of outcome rewards alone that dense ones save on the way to "
           "the accuracy both reach in 240")


def effects(seeds):
  return steps.spared(tabular.changed(
      prime.get_config(), rewards__process__beta=0.5, prm__loss__beta=0.5), seeds)


def grid():
  """Dense PRIME against RLOO of verdicts alone, on the quickstart's task."""
  return grids.product(
      [{"config": "configs/quickstart.py"}],
      [{"arm": "dense"},
       {"arm": "outcome", "rewards": dict(outcome=dict(name="outcome.verdict", coef=1.0)),
        "advantages": dict(outcome=dict(name="group.rloo", gamma=1.0), whiten=True)}],
      [{"seed": s} for s in range(5)])
