"""Token-Supervised Value Models for Enhancing Mathematical Reasoning Capabilities of Large Language
Models (arXiv:2407.12863).

Completions have four tokens. The probability that one is right depends on the counts of its
tokens and on the prompt. A linear model of these counts, the prompt and the position learns a
value for every token, in one pass over the rows in random order.

The labels of a token are either the share of right completions among those with the same prefix,
or the outcome of its own completion. In a full batch both have the same gradient, with the
squared error and with the cross-entropy, so that they differ only in the noise of small batches.
The values then pick one of eight half completions of new prompts. The measure is the expected
outcome of the half completion that is picked.

Confidence in the formula: medium.
"""
import functools

import jax
import jax.numpy as jnp
import optax

from experiments.claims.environments import learn
from rlx.core import prefixes
from rlx.losses import reward_model

CLAIMS = ("values learned from the share of right completions of a prefix are better for search "
          "than those learned from outcomes",)
MEASURE = "value of the half completion that is picked: labels of prefixes minus labels of outcomes"
MARGIN, RATE = 0.05, 0.1
FIRST = ("not seen", None)
PROMPTS, GROUP, VOCAB, LENGTH = 64, 64, 6, 4


def features(difficulty_B, tokens_BT):
  """Returns features [B, T, D]: the prompt and the counts of the tokens so far, by position."""
  counts_BTV = jnp.cumsum(jax.nn.one_hot(tokens_BT, VOCAB), axis=1)
  prompt_BT1 = jnp.broadcast_to(difficulty_B[:, None, None], (*tokens_BT.shape, 1))
  x_BTX = jnp.concatenate([jnp.ones_like(prompt_BT1), prompt_BT1, counts_BTV], axis=2)
  place_TT = jnp.eye(tokens_BT.shape[1])
  return jnp.einsum("BTX,TY->BTYX", x_BTX, place_TT).reshape(*tokens_BT.shape, -1)


def picked(seed, rate, *, by_prefix):
  """Returns the mean true value of the half completions that the learned values pick."""
  keys = jax.random.split(jax.random.key(seed), 7)
  worth_V = jax.random.normal(keys[0], (VOCAB,))
  def chance(difficulty_X, counts_XV):
    return jax.nn.sigmoid(counts_XV @ worth_V + difficulty_X)

  difficulty_B = jnp.repeat(jax.random.normal(keys[1], (PROMPTS,)) - 1, GROUP)
  tokens_BT = jax.random.randint(keys[2], (PROMPTS * GROUP, LENGTH), 0, VOCAB)
  counts_BV = jax.nn.one_hot(tokens_BT, VOCAB).sum(axis=1)
  outcome_B = 1.0 * jax.random.bernoulli(keys[3], chance(difficulty_B, counts_BV))
  mask_BT = jnp.ones(tokens_BT.shape, bool)
  learn_PG = jnp.ones((PROMPTS, GROUP), bool)
  labels_BT = prefixes.values(
      tokens_BT, mask_BT, outcome_B.reshape(learn_PG.shape), learn_PG) if by_prefix else (
          jnp.broadcast_to(outcome_B[:, None], tokens_BT.shape))
  x_BTD = features(difficulty_B, tokens_BT)
  order_SN = jax.random.permutation(keys[4], len(outcome_B)).reshape(-1, 8)

  # New prompts: eight pairs of first tokens each, worth the mean over what may follow.
  new_B = jnp.repeat(jax.random.normal(keys[5], (512,)) - 1, 8)
  half_BT = jax.random.randint(keys[6], (512 * 8, LENGTH // 2), 0, VOCAB)
  rest_RT = jnp.stack(jnp.divmod(jnp.arange(VOCAB**2), VOCAB), axis=1)
  counts_BRV = (jax.nn.one_hot(half_BT, VOCAB).sum(axis=1)[:, None]
                + jax.nn.one_hot(rest_RT, VOCAB).sum(axis=1))
  true_PG = chance(new_B[:, None], counts_BRV).mean(axis=1).reshape(512, 8)
  new_BTD = features(new_B, jnp.pad(half_BT, ((0, 0), (0, LENGTH // 2))))

  def loss(weights_D, rows_N):
    return reward_model.mse((x_BTD[rows_N] @ weights_D).ravel(), labels_BT[rows_N].ravel(),
                            mask_BT[rows_N].ravel())

  weights_D = learn.descend(jnp.zeros(x_BTD.shape[2]), loss, optax.sgd(rate), batches=order_SN)
  scores_PG = (new_BTD[:, LENGTH // 2 - 1] @ weights_D).reshape(512, 8)
  return true_PG[jnp.arange(512), jnp.argmax(scores_PG, axis=1)].mean()


def arms():
  return {name: learn.arm(functools.partial(picked, by_prefix=by_prefix))
          for name, by_prefix in (("prefixes", True), ("outcomes", False))}
