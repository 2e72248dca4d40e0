"""Rare right completions, four a prompt and step. Against the verdict of the greedy
completion, and against nothing; the greedy one costs no step here, as in neither arm."""
import jax.numpy as jnp

from configs.papers import remax
from experiments.worlds import sparse
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy of ReMax less that of REINFORCE without a baseline, 60 steps"


def effects(seeds):
  world = sparse.rare()
  c = tabular.changed(remax.get_config(), rollouts__per_prompt=4)

  def judge(key, logits_PNV, batch):
    found = world.judge(key, logits_PNV, batch)
    greedy = world.tree.sample(key, 1e4 * logits_PNV, 1)  # The most likely, for certain.
    greedy_P = world.judge(key, logits_PNV, greedy)["outcome_B"]
    return found | dict(greedy_B=jnp.repeat(greedy_P, c.rollouts.per_prompt))

  def accuracy(c):
    found, _ = tabular.train(c, world.tree, judge, world.measure, seeds=seeds, steps=60,
                             lr=10.0, start=world.start)
    return found["accuracy"][:, -1]

  return accuracy(c) - accuracy(tabular.changed(
      c, advantages__outcome=dict(name="batch.reinforce")))
