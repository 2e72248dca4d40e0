"""End (0), work (1), fill (2), at most seven tokens. Accuracy, if it ends now, is
0.1, 0.5 and 1 after no, one and two pieces of work: the score of a step, exact here.
The policy starts by going on too long.

Both arms learn from the verdict, one from the changes of accuracy too. Where accuracy
comes out lower by more than 0.02, what was saved counts as lost.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import vsrm
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "tokens of completions without the steps' rewards less those with them"
REVISED = "the start did not go on for too long"
VALUES = jnp.array([0.1, 0.5, 1.0])
LATE = jnp.array([-1.5, 0.0, 0.0])  # Logits of the start.


def values_BT(batch):
  return VALUES[jnp.minimum(jnp.cumsum(batch.tokens_BT == 1, axis=1), 2)]


def chance(batch):
  """Of a right answer."""
  ends_BT = (batch.tokens_BT == 0) & batch.mask_BT
  return jnp.sum(ends_BT * values_BT(batch), axis=1)


def judge(key, logits_PNV, batch):
  del logits_PNV
  return dict(outcome_B=1.0 * jax.random.bernoulli(key, chance(batch)),
              step_scores_BT=values_BT(batch), step_ends_BT=batch.mask_BT)


def effects(seeds):
  world = tabular.Tree(prompts=4, vocab=3, length=7, eos=True)
  right_PL = verdicts.of_leaves(world, chance)
  length_PL = verdicts.of_leaves(world, lambda batch: 1.0 * batch.mask_BT.sum(1))
  measure = lambda x: dict(verdicts.accuracy(world, right_PL)(x),
                           length=world.expected_P(x, length_PL).mean())

  def of(coef):
    c = tabular.changed(vsrm.get_config(), rewards__process__coef=coef,
                        rewards__process__start=0.1)
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=300, lr=4.0,
                             start=lambda key: world.start() + LATE)
    return found["length"][:, -1], found["accuracy"][:, -1]

  (long, base), (short, accuracy) = of(0.0), of(1.0)
  return np.where(accuracy >= base - 0.02, long - short, -np.abs(long - short))
