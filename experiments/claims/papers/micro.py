"""Three groups of people disagree on completions. Whether a person belongs to a group depends on
the prompt, but does not follow from it, and pairs do not say whose they are. A group's preferences
are those of a Bradley-Terry model that is linear in eight numbers of a completion.

Two reward models read prompt and completion in the same hidden layer: one has four heads and a
router of the prompt, as in the config, the other one has one head. Both learn from 1000 pairs. The
log-likelihood of new pairs is measured: whose they are is known to neither model.
"""
import jax
import jax.numpy as jnp
import optax

from configs.papers import micro
from experiments.claims.environments import learn, tabular
from rlx.losses import reward_model
from rlx.models import value

MEASURE = "log-likelihood of a new pair, in nats, by a mixture of heads minus that by one head"
MARGIN, RATE = 0.02, 0.01
FIRST = ("confirmed", None)
GROUPS, OF_PROMPT, OF_COMPLETION, HIDDEN, PAIRS = 3, 4, 8, 32, 1000


def pairs(key, shares_XG, tastes_FG):
  """Returns (prompts_NX, completions_N2F), the better completion first."""
  keys = jax.random.split(key, 4)
  x_NX = jax.random.normal(keys[0], (PAIRS, OF_PROMPT))
  y_N2F = jax.random.normal(keys[1], (PAIRS, 2, OF_COMPLETION))
  group_N = jax.random.categorical(keys[2], x_NX @ shares_XG)
  worth_N2 = jnp.einsum("NcF,FN->Nc", y_N2F, tastes_FG[:, group_N])
  is_first_N = jax.random.bernoulli(keys[3], jax.nn.sigmoid(worth_N2[:, 0] - worth_N2[:, 1]))
  return x_NX, jnp.where(is_first_N[:, None, None], y_N2F, y_N2F[:, ::-1])


def outputs(params, x_NX, y_NF):
  """Returns the numbers [N, C] of a state; all of y_NF are 0 at the end of the prompt."""
  read_ND = jnp.concatenate([x_NX, y_NF], axis=1)
  return jax.nn.relu(read_ND @ params["hidden"] + params["bias"][None]) @ params["head"]


def of_one(params, x_NX, y_N2F):
  chosen_N, rejected_N = (outputs(params, x_NX, y_N2F[:, i])[:, 0] for i in range(2))
  return reward_model.bradley_terry(chosen_N, rejected_N, jnp.ones(PAIRS, bool))


def of_mixture(params, x_NX, y_N2F):
  states = [outputs(params, x_NX, y_NF) for y_NF in (0 * y_N2F[:, 0], y_N2F[:, 0], y_N2F[:, 1])]
  heads_N3K, routing_N1K = value.split_mixture(jnp.stack(states, axis=1))
  return reward_model.mixture(heads_N3K[:, 1], heads_N3K[:, 2], routing_N1K[:, 0],
                              jnp.ones(PAIRS, bool))


def arms():
  def likelihood(kind, loss):
    def run(seed, rate):
      keys = jax.random.split(jax.random.key(seed), 7)
      certain, slope = tabular.around(keys[0], (1.0, 3.0))
      world = (certain * jax.random.normal(keys[1], (OF_PROMPT, GROUPS)),
               slope * jax.random.normal(keys[2], (OF_COMPLETION, GROUPS)) / OF_COMPLETION**0.5)
      known, new = (pairs(key, *world) for key in keys[3:5])
      count = value.count_outputs(kind, micro.get_config().train_scorer.heads)
      sizes = OF_PROMPT + OF_COMPLETION, HIDDEN
      start = dict(hidden=jax.random.normal(keys[5], sizes) / sizes[0]**0.5,
                   bias=jnp.zeros(HIDDEN),
                   head=0.1 * jax.random.normal(keys[6], (HIDDEN, count)) / HIDDEN**0.5)
      learned = learn.descend(start, lambda params, _: loss(params, *known), optax.adam(rate),
                              steps=200)
      return -loss(learned, *new).mean()
    return learn.arm(run)
  return {"mixture": likelihood("mixture", of_mixture), "one head": likelihood("plain", of_one)}
