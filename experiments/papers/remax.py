"""Rare right completions, four a prompt and step. Against the verdict of the greedy
completion, and against nothing; the greedy one costs no step here, as in neither arm."""
import jax.numpy as jnp

from configs.papers import remax
from experiments.environments import sparse
from experiments.environments import tabular

CLAIM = 0
MEASURE = "accuracy of ReMax less that of REINFORCE without a baseline, 60 steps"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
WORLD, GROUP = sparse.rare(), 4


def environment(key):
  plain = WORLD.environment(key)
  def judge(key, logits_PNV, batch):
    greedy = WORLD.tree.sample(key, 1e4 * logits_PNV, 1)  # The most likely, for certain.
    greedy_P = plain.judge(key, logits_PNV, greedy)["outcome_B"]
    return plain.judge(key, logits_PNV, batch) | dict(greedy_B=jnp.repeat(greedy_P, GROUP))
  return plain._replace(judge=judge)


def arms():
  c = tabular.changed(remax.get_config(), rollouts__per_prompt=GROUP)
  def accuracy(c):
    return lambda seeds, rates: tabular.train(
        c, WORLD.tree, environment, seeds=seeds, lr=rates, steps=60)[0]["accuracy"][:, -1]
  none = tabular.changed(c, advantages__outcome=dict(name="batch.reinforce"))
  return {"ReMax": accuracy(c), "no baseline": accuracy(none)}
