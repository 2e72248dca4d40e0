"""Simulates rare right completions (environments/sparse.py). One arm samples
one completion per prompt and compares it with learned values, as in the paper. The other
samples pairs, whose advantage is half of their difference. Both see the same number of
completions, so the single completions get twice as many steps. Single completions suffice
if they reach 95% of the accuracy of pairs.
"""
from configs.papers import dro
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy from single completions minus 95% of that from pairs"
MARGIN, RATE = 0.05, 20.0
FIRST = ("confirmed", "both arms ended with an accuracy near 1")


def compare(singles, pairs):
  return singles - 0.95 * pairs


def arms():
  problem, c = sparse.rare(), tabular.changed(dro.get_config(), learner__epochs=4)
  singles = tabular.changed(c, rollouts__per_prompt=1)
  pairs = tabular.changed(c, rollouts__per_prompt=2, advantages=dict(
      outcome=dict(name="group.mean_baseline"), whiten=False))
  return (problem.arms({"singles": singles}, "accuracy", steps=80)
          | problem.arms({"pairs": pairs}, "accuracy", steps=40))
