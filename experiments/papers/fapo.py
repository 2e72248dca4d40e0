"""Of 64 completions about 3% are right and sound, 12% right after a flawed step.

The share of flawed right ones is followed with the penalty (lambda = 1) and without it
(lambda = 0), at rates tuned for the share of sound ones. What is claimed is that it first
rises and then falls, without a schedule: the smaller of both moves.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import fapo
from experiments.environments import tabular

CLAIM = 0
MEASURE = "how far flawed right answers rise and then fall with the penalty less without"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
WORLD = tabular.Tree(prompts=8, vocab=4, length=3)


def environment(key):
  keys = jax.random.split(key)
  sound, right = tabular.around(keys[0], [0.03, 0.15])
  kind_PL = jax.random.uniform(keys[1], (8, 64))
  sound_PL, flawed_PL = kind_PL < sound, (kind_PL >= sound) & (kind_PL < right)

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    at = batch.prompt_B, WORLD.leaf_B(batch)
    # The second step of completions that are not sound is wrong.
    wrong_BT = ~sound_PL[at][:, None] & (jnp.arange(3) == 1)[None]
    return dict(outcome_B=1.0 * (sound_PL | flawed_PL)[at], step_scores_BT=1.0 - wrong_BT,
                step_ends_BT=batch.mask_BT)

  return tabular.Environment(judge, lambda x: dict(
      sound=WORLD.expected_P(x, sound_PL).mean(), flawed=WORLD.expected_P(x, flawed_PL).mean()))


def arms():
  def moves(lam):
    c = tabular.changed(fapo.get_config(), rewards__outcome__lam=lam)
    def arm(seeds, rates):
      found, _ = tabular.train(c, WORLD, environment, seeds=seeds, lr=rates, steps=200)
      flawed_IS = found["flawed"]
      peak_I = flawed_IS.max(axis=1)
      return (np.minimum(peak_I - flawed_IS[:, 0], peak_I - flawed_IS[:, -1]),
              found["sound"][:, -1])
    return arm
  return {"penalty": moves(1.0), "without": moves(0.0)}
