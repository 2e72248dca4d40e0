"""Two proxies, the shares of two tokens among three: both are good up to one third and
bad beyond, and the start is below that.

The config, with thresholds at that point, against fixed weights. How thresholds are
found, a search on the gold score in the paper, is left out.
"""
import jax.numpy as jnp

from configs.papers import cons_rm
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "gold score at the end with a threshold for each proxy less with fixed weights"
BEST = 1 / 3


def shares(tokens_XT):
  """Of tokens 1 and 2, [X, 2]."""
  return jnp.stack([jnp.mean(tokens_XT == t, axis=1) for t in (1, 2)], axis=1)


def effects(seeds):
  world = tabular.Tree(prompts=2, vocab=8, length=3)
  gold_L = -jnp.sum((shares(jnp.asarray(world.leaves[0])) - BEST)**2, axis=1)

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    return dict(outcome_B=jnp.zeros(len(batch.prompt_B)),
                scores_BE=shares(batch.tokens_BT))

  def gold(**outcome):
    c = tabular.changed(cons_rm.get_config(), rewards__outcome=dict(
        name="shaping.ensemble", coef=1.0, **outcome))
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(gold=world.expected_P(x, gold_L).mean()),
        seeds=seeds, steps=400, lr=10.0)
    return found["gold"][:, -1]

  return gold(kind="lagrange", k=10.0, thresholds=(BEST, BEST)) - gold(kind="mean")
