"""A completion is one of six answers and one of six confidences, 0 to 1. An answer is right with a
probability that is drawn for it, at most 0.9, so that the best confidence is neither 0 nor 1. The
distance of confidence and probability is compared with and without the term of confidence; the
learning rate is the one with the best accuracy.
"""
import jax
import jax.numpy as jnp

from configs.papers import refine
from experiments.claims.environments import tabular

MEASURE = "mean distance of confidence and accuracy without the Brier term minus that with it"
MARGIN, RATE = 0.05, 1.0
FIRST = ("confirmed", None)
P, V = 8, 6
TREE = tabular.Tree(prompts=P, vocab=V, length=2)


def environment(key):
  chance_PV = jax.random.uniform(key, (P, V), maxval=0.9)

  def verify(batch, key, **_):
    chance_B = chance_PV[batch.prompt_B, batch.tokens_BT[:, 0]]
    ones_B = jnp.ones_like(chance_B)  # A confidence is stated, the structure is right.
    return dict(outcome_B=1.0 * jax.random.bernoulli(key, chance_B),
                scores_BE=jnp.stack([batch.tokens_BT[:, 1] / (V - 1), ones_B, ones_B], axis=1))

  answer_L, level_L = TREE.leaves[0].T
  chance_PL = chance_PV[:, answer_L]
  return tabular.Environment(verify, TREE.means(
      accuracy=chance_PL, near=-jnp.abs(level_L / (V - 1) - chance_PL)))


def arms():
  c = refine.get_config()
  without = tabular.changed(c, rewards__confidence__coef=0.0)
  return tabular.arms({"with the term": c, "without": without}, TREE, environment,
                      ("near", "accuracy"), steps=300)
