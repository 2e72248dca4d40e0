"""Rare right completions of 64, four in ten of them in a form the strict verifier
rejects, so that some prompts have none that it accepts.

The second verifier, for a small model, accepts 95% of right completions and 2% of wrong
ones, always the same: it can be farmed. Pass rates are by the truth.
"""
import jax
import jax.numpy as jnp

from configs.papers import tinyv
from experiments.environments import tabular

CLAIM = 0
MEASURE = "pass rate learned with the second verifier less that with the strict one alone"
MARGIN, RATE = 0.05, 10.0
FIRST = ("opposite", None)
WORLD = tabular.Tree(prompts=16, vocab=8, length=2)


def environment(key):
  keys = jax.random.split(key)
  draws_3PL = jax.random.uniform(keys[0], (3, 16, 64))
  right, strict, missed, farmed = tabular.around(keys[1], (0.05, 0.6, 0.05, 0.02))
  right_PL = draws_3PL[0] < right
  strict_PL = right_PL & (draws_3PL[1] < strict)
  second_PL = draws_3PL[2] < jnp.where(right_PL, 1 - missed, farmed)

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    at = batch.prompt_B, WORLD.leaf_B(batch)
    return dict(outcome_B=1.0 * strict_PL[at], scores_BE=1.0 * second_PL[at][:, None])

  return tabular.Environment(judge, lambda x: dict(rate=WORLD.expected_P(x, right_PL).mean()))


def arms():
  c = tinyv.get_config()
  def pass_rate(c):
    return lambda seeds, rates: tabular.train(
        c, WORLD, environment, seeds=seeds, lr=rates, steps=200)[0]["rate"][:, -1]
  return {"with the second": pass_rate(c),
          "strict alone": pass_rate(tabular.changed(c, rewards__outcome__weight=0.0))}
