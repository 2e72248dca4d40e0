"""One prompt is trained on. The logits learned from it are added to the fixed logits of 64
other prompts, which have the same right completions and different random preferences: the
simplest form of what a model shares between prompts. GRPO runs with the paper's coefficients
for 500 steps, at the learning rate that is best for the other prompts. The training prompt
counts as nearly learned within 1% of the highest accuracy on it.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import one_shot
from experiments.claims.environments import tabular

CLAIM = 1
MEASURE = ("accuracy on other prompts at the end minus that when the training prompt is nearly "
           "learned")
MARGIN, RATE = 0.05, 2.0
FIRST = ("confirmed",
         "an accuracy of 99% on the training prompt is not reached at every learning rate")
TREE = tabular.Tree(prompts=1, vocab=4, length=3)
OTHERS = tabular.Tree(prompts=64, vocab=4, length=3)


def environment(key):
  keys = jax.random.split(key)
  right_1L = jax.random.uniform(keys[0], (1, 64)) < 0.2
  lean_PNV = OTHERS.start(keys[1], 2.0)
  return tabular.Environment(TREE.verifier(outcome_B=right_1L), lambda x: dict(
      train=TREE.expected_P(x, right_1L).mean(),
      others=OTHERS.expected_P(lean_PNV + x, jnp.broadcast_to(right_1L, (64, 64))).mean()))


def arms():
  def rise(seeds, rates):
    metrics, _ = tabular.train(one_shot.get_config(), TREE, environment, seeds=seeds, lr=rates,
                               steps=500)
    train_IS, others_IS = metrics["train"], metrics["others"]
    first_I = np.argmax(train_IS >= 0.99 * train_IS.max(axis=1, keepdims=True), axis=1)
    return others_IS[:, -1] - others_IS[np.arange(len(first_I)), first_I], others_IS[:, -1]
  return {"no rise": rise}
