"""Judges of four questions with six answers each, whose qualities are normal. At each step the
answers of a question are paired at random; which one of a pair is better is drawn from the
Bradley-Terry model of three times the difference of their qualities.

The judge of single answers gives each a score from 1 to 10 and learns with the config, from
judgements of both answers of a pair. The judge of pairs says which one is better and learns from
whether that is the label, with one prompt for each pair of answers. Both see equally many labels.
Judges are tables: nothing is learned of one answer from another one. Measured is how often the
better one of two answers wins, over all pairs.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import irpo
from experiments.claims.environments import tabular

MEASURE = "accuracy of a judge of single answers after 150 steps minus 95% of that of one of pairs"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
QUESTIONS, ANSWERS = 4, 6
ONE_X, TWO_X = (np.concatenate([at + ANSWERS * q for q in range(QUESTIONS)])
                for at in np.triu_indices(ANSWERS, 1))
SINGLE = tabular.Tree(prompts=QUESTIONS * ANSWERS, vocab=10, length=1)
PAIRS = tabular.Tree(prompts=len(ONE_X), vocab=2, length=1)


def quality(key): return jax.random.normal(key, (SINGLE.prompts,))


def paired(key, quality_P):
  """Returns (the other answer of each one's pair, whether the label says that it is better)."""
  keys = jax.random.split(key)
  order_Q6 = jnp.argsort(jax.random.uniform(keys[0], (QUESTIONS, ANSWERS)), axis=1)
  first_Y, second_Y = (order_Q6 + ANSWERS * jnp.arange(QUESTIONS)[:, None]).reshape(-1, 2).T
  is_first_Y = jax.random.bernoulli(
      keys[1], jax.nn.sigmoid(3 * (quality_P[first_Y] - quality_P[second_Y])))
  other_P = jnp.zeros(SINGLE.prompts, int).at[first_Y].set(second_Y).at[second_Y].set(first_Y)
  return other_P, jnp.zeros(SINGLE.prompts, bool).at[first_Y].set(is_first_Y).at[second_Y].set(
      ~is_first_Y)


def of_single_answers(key):
  quality_P = quality(key)

  def verify(batch, key, **_):
    other_P, is_better_P = paired(key, quality_P)
    return dict(outcome_B=(batch.tokens_BT[:, 0] + 1) / 10, pair_B=other_P[batch.prompt_B],
                better_B=1.0 * is_better_P[batch.prompt_B])

  def measure(logits_PNV):
    chance_PV = jnp.exp(SINGLE.leaf_logps(logits_PNV))
    wins_VV = (jnp.sign(jnp.arange(10)[:, None] - jnp.arange(10)[None]) + 1) / 2
    wins_X = jnp.einsum("xv,vw,xw->x", chance_PV[ONE_X], wins_VV, chance_PV[TWO_X])
    return dict(accuracy=accuracy(quality_P, wins_X))

  return tabular.Environment(verify, measure)


def of_pairs(key):
  quality_P = quality(key)

  def verify(batch, key, **_):
    other_P, is_better_P = paired(key, quality_P)
    label_X = jnp.where(other_P[ONE_X] == TWO_X, 1.0 * is_better_P[ONE_X], jnp.nan)
    label_B = label_X[batch.prompt_B]  # NaN of pairs that are not drawn: they do not learn.
    return dict(outcome_B=jnp.where(jnp.isnan(label_B), jnp.nan,
                                    1.0 * (batch.tokens_BT[:, 0] == label_B)))

  return tabular.Environment(verify, lambda logits_PNV: dict(accuracy=accuracy(
      quality_P, jnp.exp(PAIRS.leaf_logps(logits_PNV))[:, 1])))


def accuracy(quality_P, wins_X):
  """Mean over pairs of how often the better answer wins."""
  return jnp.where(quality_P[ONE_X] > quality_P[TWO_X], wins_X, 1 - wins_X).mean()


def arms():
  c = irpo.get_config()
  pairs = tabular.changed(c, rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)))
  return {name: tabular.arm(config, tree, environment, "accuracy", steps=150)
          for name, config, tree, environment in (
              ("single answers", c, SINGLE, of_single_answers), ("pairs", pairs, PAIRS, of_pairs))}


def compare(single_I, pairs_I): return single_I - 0.95 * pairs_I
