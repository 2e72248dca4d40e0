"""Pairs with wrong labels, and small networks that learn a reward model from them.

  D features   H hidden units   N pairs

A completion is a vector of 16 numbers, and its gold score is the output of a random network with
one hidden layer. A pair is ordered by the gold score, but for a quarter of the labels, which are
wrong. A reward model is a network of the same kind with other initial weights; it can learn wrong
labels by heart.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from experiments.claims.environments import learn
from rlx.evals import reward_model as evaluation

SIZE, HIDDEN, NEW, FLIPS = 16, 16, 2000, 0.25


class Pairs(NamedTuple):
  """Features of labelled pairs; those with valid_N False are not learned."""
  chosen_ND: jax.Array
  rejected_ND: jax.Array
  valid_N: jax.Array


class Data(NamedTuple):
  """Pairs to learn from, others whose labels are all right, and new pairs, ordered rightly."""
  labelled: Pairs
  verified: Pairs
  new: Pairs


def network(key):
  """Returns initial weights, (weights_DH, weights_H)."""
  one, two = jax.random.split(key)
  return (jax.random.normal(one, (SIZE, HIDDEN)) / SIZE**0.5,
          jax.random.normal(two, (HIDDEN,)) / HIDDEN**0.5)


def score(weights, features_ND):
  """Returns scores_N."""
  weights_DH, weights_H = weights
  return jnp.tanh(features_ND @ weights_DH) @ weights_H


def drawn(key, *, labelled=200, verified=1):
  """Returns the Data of a seed."""
  keys = jax.random.split(key, 4)
  gold = network(keys[0])
  def pairs(key, count, flips):
    keys = jax.random.split(key)
    x_2ND = jax.random.normal(keys[0], (2, count, SIZE))
    is_first_N = ((score(gold, x_2ND[0]) > score(gold, x_2ND[1]))
                  ^ jax.random.bernoulli(keys[1], flips, (count,)))
    return Pairs(*jnp.where(is_first_N[:, None], x_2ND, x_2ND[::-1]), jnp.ones(count, bool))
  return Data(pairs(keys[1], labelled, FLIPS), pairs(keys[2], verified, 0.0),
              pairs(keys[3], NEW, 0.0))


def fit(key, pairs, rate, loss_of):
  """Returns the weights of a network after 200 steps on all pairs.

  Args:
    key: of the initial weights.
    loss_of: function from (scores of the chosen, of the rejected, valid_N) to a Weighted loss.
  """
  def loss(weights, _):
    return loss_of(score(weights, pairs.chosen_ND), score(weights, pairs.rejected_ND),
                   pairs.valid_N)
  return learn.descend(network(key), loss, optax.adam(rate), steps=200)


def scores(weights, pairs):
  """Returns (scores of the chosen, of the rejected), each [N]."""
  return score(weights, pairs.chosen_ND), score(weights, pairs.rejected_ND)


def accuracy(chosen_N, rejected_N):
  """Returns the accuracy of the scores of new pairs, NaN of a model that diverged."""
  if not np.isfinite(chosen_N).all() or not np.isfinite(rejected_N).all(): return np.nan
  return evaluation.pair_accuracy(chosen_N, rejected_N)
