"""A completion has six tokens of twelve. What a reward model reads of it is the sum of vectors, one
for each token and place; the gold score is a random network of this sum, the reward model is a
network of the same kind with other initial weights (environments/preferences.py). Labels follow
the Bradley-Terry model of the gold score, so that pairs that differ little have noisier labels.

200 pairs are those of 25 trees, eight of each: in a tree eight leaves share their first tokens, one
to five of them, and leaf i is compared with leaf i + 1. The rival has the same pairs of leaves that
share nothing. The reward model then picks one of 16 completions of each of 500 new prompts, which
share nothing. Measured is the gold score of what is picked, in standard deviations of the score.
"""
import functools

import jax
import jax.numpy as jnp

from configs.papers import tree_rm
from experiments.claims.environments import learn, preferences as environment, tabular
from rlx.core import resolve

MEASURE = ("gold score of the best of 16 by the reward model, in standard deviations: pairs of "
           "trees minus pairs of completions sampled alone")
MARGIN, RATE = 0.05, 0.01
FIRST = ("opposite", None)
TREES, LEAVES, VOCAB, LENGTH, NEW, OF = 25, 8, 12, 6, 500, 16


def leaves(key, shared_R):
  """Returns tokens [R, LEAVES, T] of trees whose leaves share so many first tokens."""
  tokens_RLT = jax.random.randint(key, (len(shared_R), LEAVES, LENGTH), 0, VOCAB)
  is_shared_R1T = jnp.arange(LENGTH)[None, None] < shared_R[:, None, None]
  return jnp.where(is_shared_R1T, tokens_RLT[:, :1], tokens_RLT)


def picked(seed, rate, *, is_tree):
  """Returns the mean gold score of what the reward model picks of new completions."""
  keys = jax.random.split(jax.random.key(seed), 8)
  vectors_TVD = jax.random.normal(
      keys[0], (LENGTH, VOCAB, environment.SIZE)) / LENGTH**0.5
  read = lambda tokens_XT: vectors_TVD[jnp.arange(LENGTH), tokens_XT].sum(axis=-2)
  gold, slope = environment.network(keys[1]), tabular.around(keys[2], 3.0)
  new_PND = read(jax.random.randint(keys[3], (NEW, OF, LENGTH), 0, VOCAB))
  score = lambda weights, x: environment.score(weights, x.reshape(-1, x.shape[-1])).reshape(
      x.shape[:-1])
  gold_PN = score(gold, new_PND)
  spread = gold_PN.std()
  shared_R = jax.random.randint(keys[4], (TREES,), 1, LENGTH) * is_tree
  x_RLD = read(leaves(keys[5], shared_R))
  x_2ND = jnp.stack([x_RLD, jnp.roll(x_RLD, -1, axis=1)]).reshape(2, -1, environment.SIZE)
  gap_N = slope / spread * (score(gold, x_2ND[0]) - score(gold, x_2ND[1]))
  is_first_N = jax.random.bernoulli(keys[6], jax.nn.sigmoid(gap_N))
  pairs = environment.Pairs(*jnp.where(is_first_N[None, :, None], x_2ND, x_2ND[::-1]),
                            jnp.any(x_2ND[0] != x_2ND[1], axis=1))
  loss = resolve.bind("losses", tree_rm.get_config().train_scorer.loss)
  weights = environment.fit(keys[7], pairs, rate, lambda chosen_N, rejected_N, valid_N: loss(
      chosen_N=chosen_N, rejected_N=rejected_N, valid_N=valid_N))
  best_P = jnp.argmax(score(weights, new_PND), axis=1)
  return (gold_PN[jnp.arange(NEW), best_P].mean() - gold_PN.mean()) / spread


def arms():
  return {name: learn.arm(functools.partial(picked, is_tree=is_tree))
          for name, is_tree in (("tree", True), ("alone", False))}
