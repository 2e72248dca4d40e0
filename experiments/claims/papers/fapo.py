"""Simulates 64 completions per prompt, of which about 3% are right with sound steps and
12% are right after a flawed step.

The share of flawed right completions is recorded with the penalty (lambda = 1) and
without it (lambda = 0), at learning rates tuned for the share of sound completions. The
paper claims that this share first rises and then falls without a schedule; the check
measures the smaller of the two changes.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import fapo
from experiments.claims.environments import tabular

MEASURE = ("rise and later fall of the share of flawed right answers, the smaller of the two: with "
           "the penalty minus without it")
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=3)


def environment(key):
  keys = jax.random.split(key)
  sound, right = tabular.around(keys[0], [0.03, 0.15])
  kind_PL = jax.random.uniform(keys[1], (8, 64))
  sound_PL, flawed_PL = kind_PL < sound, (kind_PL >= sound) & (kind_PL < right)

  def verify(batch, **_):
    at = batch.prompt_B, TREE.leaf_B(batch)
    # The second step of completions that are not sound is wrong.
    wrong_BT = ~sound_PL[at][:, None] & (jnp.arange(3) == 1)[None]
    return dict(outcome_B=1.0 * (sound_PL | flawed_PL)[at], step_scores_BT=1.0 - wrong_BT,
                step_ends_BT=batch.mask_BT)

  return tabular.Environment(verify, TREE.means(sound=sound_PL, flawed=flawed_PL))


def arms():
  def config(lam):
    return tabular.changed(fapo.get_config(), rewards__outcome__lam=lam)
  def moves(curves):
    flawed_IS = curves["flawed"]
    peak_I = flawed_IS.max(axis=1)
    return (np.minimum(peak_I - flawed_IS[:, 0], peak_I - flawed_IS[:, -1]), curves["sound"][:, -1])
  return tabular.arms({"penalty": config(1.0), "without": config(0.0)},
                      TREE, environment, moves, steps=200)
