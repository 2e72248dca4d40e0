"""A completion consists of an end token (0), work (1) and fill (2) and has at most seven tokens.
The accuracy of an answer that ends now is about 0.1, 0.5 and 0.9 after zero, one and two pieces
of work. This accuracy is the score of a step and is known exactly. The policy starts with
completions that are too long.

Both arms learn from the verdict, and one of them also from the changes of accuracy, at the
learning rate with the best accuracy. Measured are the tokens saved. Where accuracy is lower by
more than 0.02, the tokens saved count as lost.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import vsrm
from experiments.claims.environments import tabular, verdicts

MEASURE = "tokens of completions without rewards for steps minus those with them"
MARGIN, RATE = 0.2, 4.0
FIRST = ("not recorded", "the completions of the initial policy were not too long")
DIFFERS = {"rewards.process.start": "the accuracy before the first step is 0.1 in this environment"}
TREE = tabular.Tree(prompts=4, vocab=3, length=7, eos=True)


def environment(key):
  keys = jax.random.split(key)
  value_3 = jnp.array([0.1, 0.5, 0.9]) + jax.random.uniform(
      keys[0], (3,), minval=-0.1, maxval=0.1) * (jnp.arange(3) > 0)
  late = tabular.around(keys[1], jnp.array([-1.5, 0.0, 0.0]))

  def values_BT(batch):
    return value_3[jnp.minimum(jnp.cumsum(batch.tokens_BT == 1, axis=1), 2)]

  def chance(batch):
    """Returns the probability of a right answer."""
    return jnp.sum(((batch.tokens_BT == 0) & batch.mask_BT) * values_BT(batch), axis=1)

  def verify(batch, key, **_):
    return dict(outcome_B=1.0 * jax.random.bernoulli(key, chance(batch)),
                step_scores_BT=values_BT(batch), step_ends_BT=batch.mask_BT)

  chance_PL = verdicts.of_leaves(TREE, chance)
  length_L = jnp.asarray(TREE.leaves[1].sum(axis=1))
  return tabular.Environment(verify, TREE.means(accuracy=chance_PL, length=length_L),
                             start=TREE.start() + late)


def arms():
  c = tabular.changed(vsrm.get_config(), rewards__process__start=0.1)
  def measures(curves):
    return np.stack([curves["length"][:, -1], curves["accuracy"][:, -1]], axis=1), (
        curves["accuracy"][:, -1])
  alone = tabular.changed(c, rewards__process__coef=0.0)
  return tabular.arms({"with steps": c, "verdict alone": alone},
                      TREE, environment, measures, steps=300)


def compare(with_I2, without_I2):
  saved_I = without_I2[:, 0] - with_I2[:, 0]
  return np.where(with_I2[:, 1] >= without_I2[:, 1] - 0.02, saved_I, -np.abs(saved_I))
