"""A question asks for two operations on digits, one after the other. There are four operations
and hence 16 kinds of questions, by the first and the second operation; the results of the
operations are drawn from the seed. A policy uses the same table for an operation in all
questions, so that kinds of questions share skills. It starts with a small preference for the
right result of every step.

Twelve kinds are trained with verdicts of whole answers. The four kinds that ask for the same
operation twice are held out. The claim is that accuracy on these is higher after training than
before, at the learning rate with the best accuracy on the trained kinds.
"""
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from configs.papers import synlogic
from experiments.claims.environments import tabular

MEASURE = "accuracy on kinds of question that are not trained: after training minus before"
MARGIN, RATE = 0.05, 5.0
FIRST = ("confirmed", None)
EACH, BASE = 6, 10
ASKED = list(itertools.product(range(4), range(4), range(EACH)))  # Operations, question.
TREE = tabular.Tree(prompts=len(ASKED), vocab=BASE, length=2)
IS_TRAINED_P = np.array([first != second for first, second, _ in ASKED])


def asked(p, first, second):
  """Returns which of 4 x 10 x 10 steps each node of question p asks for, spread evenly."""
  x, y, z = p % BASE, (3 * p + p // BASE) % BASE, (7 * p + p // BASE) % BASE
  return [first * 100 + 10 * x + y] + [second * 100 + 10 * a + z for a in range(BASE)]


STEP_PN = np.array([asked(p, first, second) for p, (first, second, _) in enumerate(ASKED)])


def tied(lr):
  """Returns SGD on one table of steps that all prompts share."""
  def as_one(grads_PNV, _):
    return jnp.zeros((400, BASE)).at[STEP_PN].add(grads_PNV)[STEP_PN]
  return optax.chain(optax.stateless(as_one), optax.sgd(lr))


def environment(key):
  keys = jax.random.split(key)
  digit_S = jax.random.randint(keys[0], (400,), 0, BASE)
  first_P1 = digit_S[STEP_PN[:, :1]]
  second_P1 = digit_S[jnp.take_along_axis(jnp.asarray(STEP_PN), 1 + first_P1, axis=1)]
  right_PL = jnp.arange(BASE ** 2)[None] == BASE * first_P1 + second_P1

  def verify(batch, **_):
    right_B = right_PL[batch.prompt_B, TREE.leaf_B(batch)] * 1.0
    return dict(outcome_B=jnp.where(jnp.asarray(IS_TRAINED_P)[batch.prompt_B], right_B, jnp.nan))

  def measure(logits_PNV):
    right_P = TREE.expected_P(logits_PNV, right_PL)
    return dict(trained=right_P[IS_TRAINED_P].mean(), new=right_P[~IS_TRAINED_P].mean())

  skill_SV = 1.5 * jax.nn.one_hot(digit_S, BASE) + jax.random.normal(keys[1], (400, BASE))
  return tabular.Environment(verify, measure, start=skill_SV[STEP_PN])


def arms():
  c = tabular.changed(synlogic.get_config(), rollouts__per_prompt=8)
  def gained(seeds, rates):
    metrics, _ = tabular.train(c, TREE, environment, seeds=seeds, lr=rates, steps=100,
                               optimizer=tied)
    return metrics["new"][:, -1] - metrics["new"][:, 0], metrics["trained"][:, -1]
  return {"before training": gained}
