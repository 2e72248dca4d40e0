"""Rare right completions, four a prompt. The mean of the other three as the baseline
against values learned along, with GAE. DPO and the clip are left out."""
from configs.papers import rloo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy of RLOO less that of PPO's critic and GAE, 30 steps"
REVISED = "both arms ended near 1"
CRITIC = dict(total=dict(name="temporal.gae", lam=0.95), whiten=False)


def effects(seeds):
  world = sparse.rare()
  c = tabular.changed(rloo.get_config(), rollouts__per_prompt=4)
  accuracy = lambda c: world.learned(c, seeds, steps=30, lr=15.0)["accuracy"][:, -1]
  return accuracy(c) - accuracy(tabular.changed(c, advantages=CRITIC))
