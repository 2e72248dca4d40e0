"""Simulates two independent rewards: a tenth of 64 completions is right, and about three
tokens of ten are good steps. One arm normalises each reward in its group before adding
them, the other normalises their sum; both whiten. The check compares the gain of the
reward that gains least.
"""
import jax
import numpy as np

from configs.papers import gdpo
from experiments.claims.environments import tabular, verdicts

CLAIM = 1
MEASURE = ("the smaller of the two rewards' gains in 150 steps: normalised before the sum minus "
           "after it")
MARGIN, RATE = 0.05, 4.0
FIRST = ("not seen",
         "the measure was the smaller of two differences, which is below 0 on average if both arms "
         "are equal")
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key):
  keys = jax.random.split(key)
  right_PL = verdicts.drawn(keys[0], TREE, 0.1)
  good_PNV = jax.random.uniform(keys[1], TREE.start().shape) < 0.3
  good = lambda batch: 1.0 * good_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
  steps_PL = verdicts.of_leaves(TREE, lambda batch: good(batch).mean(axis=1))
  verdict = verdicts.verifier(TREE, right_PL)

  def verify(batch, key, **_):
    return dict(verdict(batch, key=key), step_scores_BT=good(batch), step_ends_BT=batch.mask_BT)

  return tabular.Environment(verify, TREE.means(accuracy=right_PL, steps=steps_PL))


def arms():
  c = gdpo.get_config()
  after = dict(total=dict(name="group.grpo"), whiten=True)
  def least(curves):
    return np.min([x.mean(axis=1) - x[:, 0] for x in curves.values()], axis=0)
  return tabular.arms({"before": c, "after": tabular.changed(c, advantages=after)},
                      TREE, environment, least, steps=150)
