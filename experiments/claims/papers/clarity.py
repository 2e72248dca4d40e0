"""A completion has two tokens of reasoning, which lead to one of four options by a random table of
the prompt, and states an option. One option is right. The judge of whether the reasoning leads to
the stated option is wrong about one completion in ten, drawn anew each time; the form is always
right. The initial policy states any option after any reasoning.

The config is compared with the verdict on the option alone, by two measures: the accuracy over
training, and how often the reasoning leads to the stated option over training.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import clarity
from experiments.claims.environments import tabular, verdicts

MEASURE = "gain of accuracy and of consistency over 100 steps of training, the smaller"
MARGIN, RATE = 0.05, 10.0
FIRST = ("opposite", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=3)


def environment(key):
  keys = jax.random.split(key, 3)
  leads_PVV = jax.random.randint(keys[0], (TREE.prompts, 4, 4), 0, 4)
  right_P = jax.random.randint(keys[1], (TREE.prompts,), 0, 4)
  mistakes = tabular.around(keys[2], 0.1)

  def is_consistent(batch):
    first_B, second_B, stated_B = batch.tokens_BT.T
    return leads_PVV[batch.prompt_B, first_B, second_B] == stated_B
  def is_right(batch): return right_P[batch.prompt_B] == batch.tokens_BT[:, 2]

  def verify(batch, key, **_):
    mistaken_B = jax.random.bernoulli(key, mistakes, batch.prompt_B.shape)
    judged_B = 1.0 * (is_consistent(batch) ^ mistaken_B)
    return dict(outcome_B=1.0 * is_right(batch),
                scores_BE=jnp.stack([judged_B, jnp.ones_like(judged_B)], axis=1))

  return tabular.Environment(verify, TREE.means(
      accuracy=verdicts.of_leaves(TREE, is_right),
      consistency=verdicts.of_leaves(TREE, is_consistent)))


def arms():
  c = clarity.get_config()
  alone = tabular.changed(c, rewards=dict(outcome=c.rewards.outcome))
  def both(curves):
    means_I2 = np.stack([curves[x].mean(axis=1) for x in ("accuracy", "consistency")], axis=1)
    return means_I2, means_I2[:, 0]
  return tabular.arms({"consistency": c, "verdict alone": alone}, TREE, environment, both,
                      steps=100)


def compare(mine_I2, other_I2): return np.min(mine_I2 - other_I2, axis=1)
