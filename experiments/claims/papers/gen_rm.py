"""Simulates chains of four steps in which a hidden table gives the next state from the state
and a digit. A solver errs at every fifth step on average, and only whole solutions have
labels.

A small network predicts the next state from one hidden layer. It answers "Is this right?"
from that layer and the written state, summed over all steps. It learns to answer Yes and
No from 200 solutions; one arm adds the likelihood of right solutions at a third of the
weight, the other does not. The arms are compared by best of 8. Rationales before the
answer are left out.
"""
import functools

import jax
import jax.numpy as jnp
import optax

from experiments.claims.environments import learn
from rlx.core import records
from rlx.evals import best_of_n
from rlx.losses import aggregate, reward_model, sft

CLAIM = 1
MEASURE = ("best-of-8 accuracy of a verifier that also learns right solutions minus that of one "
           "that does not")
MARGIN, RATE = 0.05, 0.01
FIRST = ("not seen", None)
STATES, STEPS, SOLUTIONS, HIDDEN = 6, 4, 200, 32


def solved(key, table_VV, digits_BT):
  """Returns (states_BU that begin with the start, is_right_BT) of a solver that errs."""
  keys = jax.random.split(key, 2)
  errs_BT = jax.random.bernoulli(keys[0], 0.2, digits_BT.shape)
  shift_BT = jax.random.randint(keys[1], digits_BT.shape, 1, STATES)
  states = [jnp.zeros(len(digits_BT), int)]
  for t in range(STEPS):
    right_B = table_VV[states[-1], digits_BT[:, t]]
    states.append((right_B + errs_BT[:, t] * shift_BT[:, t]) % STATES)
  return jnp.stack(states, axis=1), ~errs_BT


def start(key):
  sizes = dict(seen=(2 * STATES, HIDDEN, 2), next=(HIDDEN, STATES, HIDDEN),
               judge=(HIDDEN + STATES, HIDDEN, HIDDEN), answer=(HIDDEN, 2, HIDDEN))
  return {name: jax.random.normal(k, (rows, columns)) / inputs**0.5
          for k, (name, (rows, columns, inputs)) in zip(
              jax.random.split(key, len(sizes)), sizes.items())}


def model(params, digits_BT, states_BU):
  """Returns (logps_BT of the written states, logits_B2 of Yes and No)."""
  one_hot = lambda x_BT: jax.nn.one_hot(x_BT, STATES)
  before_BTX = jnp.concatenate([one_hot(states_BU[:, :-1]), one_hot(digits_BT)], axis=2)
  hidden_BTH = jax.nn.relu(before_BTX @ params["seen"])
  written_BTV = one_hot(states_BU[:, 1:])
  all_BTV = jax.nn.log_softmax(hidden_BTH @ params["next"])
  judged_BTH = jax.nn.relu(jnp.concatenate([hidden_BTH, written_BTV], axis=2) @ params["judge"])
  return (jnp.sum(all_BTV * written_BTV, axis=2), jnp.sum(judged_BTH, axis=1) @ params["answer"])


def best_of_8(seed, rate, weight):
  """Returns (scores_PG, is_right_PG) of new prompts by a verifier trained with this weight."""
  keys = jax.random.split(jax.random.key(seed), 6)
  table_VV = jax.random.randint(keys[0], (STATES, STATES), 0, STATES)
  digits_BT = jax.random.randint(keys[1], (SOLUTIONS, STEPS), 0, STATES)
  states_BU, is_right_BT = solved(keys[2], table_VV, digits_BT)
  is_right_B = jnp.all(is_right_BT, axis=1)

  def loss(params, _):
    logps_BT, logits_B2 = model(params, digits_BT, states_BU)
    answer = reward_model.yes_no(logits_B2[:, 0], logits_B2[:, 1], 1.0 * is_right_B,
                                 jnp.ones(SOLUTIONS, bool))
    mask_BT = jnp.broadcast_to(is_right_B[:, None], logps_BT.shape)
    written = aggregate.aggregate(sft.nll(logps_BT, mask_BT), mask_BT, mode="token-mean")
    return records.Weighted(answer.mean() + weight * written.mean(), jnp.ones(()))

  params = learn.descend(start(keys[3]), loss, optax.adam(rate), steps=200)
  digits_BT = jnp.repeat(jax.random.randint(keys[4], (256, STEPS), 0, STATES), 8, axis=0)
  states_BU, is_right_BT = solved(keys[5], table_VV, digits_BT)
  logits_B2 = model(params, digits_BT, states_BU)[1]
  scores_B = reward_model.yes_no_score(
      logits_B2[:, :1], logits_B2[:, 1:], jnp.ones((len(digits_BT), 1), bool))
  return scores_B.reshape(-1, 8), 1.0 * jnp.all(is_right_BT, axis=1).reshape(-1, 8)


def arms():
  return {name: learn.arm(functools.partial(best_of_8, weight=weight), best_of_n.best_of_n)
          for name, weight in (("with right solutions", 1 / 3), ("without", 0.0))}
