"""Rare right completions of 64, four in ten of them in a form the strict verifier
rejects, so that some prompts have none that it accepts.

The second verifier, for a small model, accepts 95% of right completions and 2% of wrong
ones, always the same: it can be farmed. Pass rates are by the truth.
"""
import jax
import jax.numpy as jnp

from configs.papers import tinyv
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "pass rate learned with the second verifier less that with the strict one alone"


def effects(seeds):
  world = tabular.Tree(prompts=16, vocab=8, length=2)
  draws_3PL = jax.random.uniform(jax.random.key(0), (3, 16, 64))
  right_PL = draws_3PL[0] < 0.05
  strict_PL = right_PL & (draws_3PL[1] < 0.6)
  second_PL = draws_3PL[2] < jnp.where(right_PL, 0.95, 0.02)

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    at = batch.prompt_B, world.leaf_B(batch)
    return dict(outcome_B=1.0 * strict_PL[at], scores_BE=1.0 * second_PL[at][:, None])

  def pass_rate(weight):
    c = tabular.changed(tinyv.get_config(), rewards__outcome__weight=weight)
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(rate=world.expected_P(x, right_PL).mean()),
        seeds=seeds, steps=200, lr=10.0)
    return found["rate"][:, -1]

  return pass_rate(1.0) - pass_rate(0.0)
