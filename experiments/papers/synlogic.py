"""Two steps of digit operations, 16 kinds of question by which operation comes first and
which second. A policy knows an operation wherever it stands, so that kinds have skills in
common. Twelve kinds are trained, on verdicts of whole answers; the four that ask for the
same operation twice are not. The start knows each step a little."""
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax

from configs.papers import synlogic
from experiments.worlds import tabular
from rlx.prompts.datasets import chain

CLAIM = 0
MEASURE = "accuracy on kinds of question that are not trained, after training less before"
OPS, EACH, BASE = "Mm+-", 6, 10


def effects(seeds):
  draw = np.random.default_rng(0)
  asked = [(pair, draw.integers(0, 10, 3)) for pair in itertools.product(range(4), repeat=2)
           for _ in range(EACH)]
  world = tabular.Tree(prompts=len(asked), vocab=BASE, length=2)
  # Which of 4 x 10 x 10 steps a node asks for, and its digit.
  step_PN = np.array([[first * 100 + 10 * x + y] + [second * 100 + 10 * a + z
                      for a in range(10)] for (first, second), (x, y, z) in asked])
  digit_S = np.array([chain.OPS[op](a, b) for op in OPS for a in range(10)
                      for b in range(10)])
  right_PL = jnp.array([[a == digit_S[steps[0]] and b == digit_S[steps[1 + a]]
                        for a, b in world.leaves[0]] for steps in step_PN])
  is_trained_P = np.array([first != second for (first, second), _ in asked])

  def start(key):
    skill_SV = 1.5 * jax.nn.one_hot(digit_S, BASE) + jax.random.normal(key, (400, BASE))
    return skill_SV[step_PN]

  def tied(lr):
    """SGD on one table of steps for all prompts."""
    def as_one(grads_PNV, _):
      return jnp.zeros((400, BASE)).at[step_PN].add(grads_PNV)[step_PN]
    return optax.chain(optax.stateless(as_one), optax.sgd(lr))

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    right_B = right_PL[batch.prompt_B, world.leaf_B(batch)] * 1.0
    counts_B = jnp.asarray(is_trained_P)[batch.prompt_B]
    return dict(outcome_B=jnp.where(counts_B, right_B, jnp.nan))

  c = tabular.changed(synlogic.get_config(), rollouts__per_prompt=8)
  found, _ = tabular.train(
      c, world, judge,
      lambda x: dict(new=world.expected_P(x, right_PL)[~is_trained_P].mean()),
      seeds=seeds, steps=100, lr=5.0, start=start, optimizer=tied)
  return found["new"][:, -1] - found["new"][:, 0]
