"""Of 64 completions 3% are right and sound, 12% right after a flawed step.

The share of flawed right ones is followed with the penalty (lambda = 1) and without it
(lambda = 0). What is claimed is that it first rises and then falls, without a schedule:
the smaller of both moves.
"""
import jax
import jax.numpy as jnp

from configs.papers import fapo
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "how far flawed right answers rise and then fall with the penalty less without"


def given(key):
  """(right, flawed) of prompts and completions."""
  kind_PL = jax.random.uniform(key, (8, 64))
  return kind_PL < 0.15, kind_PL > 0.03


def judge(key, logits_PNV, batch, drawn):
  del key, logits_PNV
  at = batch.prompt_B, batch.tokens_BT @ jnp.array([16, 4, 1])
  flawed_B1 = drawn[1][at][:, None] & (jnp.arange(3) == 1)
  return dict(outcome_B=1.0 * drawn[0][at], step_scores_BT=1.0 - flawed_B1,
              step_ends_BT=batch.mask_BT)


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=3)

  def moves(lam):
    c = tabular.changed(fapo.get_config(), rewards__outcome__lam=lam)
    found, _ = tabular.train(
        c, world, judge,
        lambda x, drawn: dict(flawed=world.expected_P(x, drawn[0] & drawn[1]).mean()),
        seeds=seeds, steps=300, lr=10.0, given=given)
    flawed_IN = found["flawed"]
    peak_I = flawed_IN.max(axis=1)
    return jnp.minimum(peak_I - flawed_IN[:, 0], peak_I - flawed_IN[:, -1])

  return moves(1.0) - moves(0.0)
