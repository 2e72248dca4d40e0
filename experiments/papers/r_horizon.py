"""A reward if both answers are right against a reward for the last answer alone.

Each prompt has two chains of one step, the max or min of two digits. The second chain starts
with the answer of the first, and the completion states both answers. The initial policy
prefers the right result of a step by about 1.5 nats, plus noise, and computes its second
answer from the first one that it stated. Max and min sometimes lead from a wrong first digit
to a right last one. Both arms are measured by the probability that both answers are right.
"""
import functools

import jax
import jax.numpy as jnp

from configs.papers import r_horizon
from experiments.environments import tabular

CLAIM = 1
MEASURE = "probability that both answers are right: rewarded for both minus rewarded for the last"
MARGIN, RATE = 0.05, 20.0
FIRST = ("confirmed", "the config's filter of prompts was switched off")
ILLUSTRATION = "One arm is rewarded for what is measured, the other only for a part of it."
TREE = tabular.Tree(prompts=16, vocab=10, length=2)


def environment(key, *, both):
  keys = jax.random.split(key, 4)
  digits_P3 = jax.random.randint(keys[0], (TREE.prompts, 3), 0, 10)
  is_max_P2 = jax.random.bernoulli(keys[1], shape=(TREE.prompts, 2))

  def after(step, from_):
    """The results [P, ...] of each prompt's operation `step` on the digits `from_`."""
    given, is_max = (x.reshape(-1, *[1] * (from_.ndim - 1)) for x in (
        digits_P3[:, step + 1], is_max_P2[:, step]))
    return jnp.where(is_max, jnp.maximum(from_, given), jnp.minimum(from_, given))

  first_P1 = after(0, digits_P3[:, :1])
  tokens_L2 = jnp.asarray(TREE.leaves[0])
  last_PL = tokens_L2[:, 1] == after(1, first_P1)
  both_PL = last_PL & (tokens_L2[:, 0] == first_P1)
  own_PN = jnp.concatenate([first_P1, after(1, jnp.broadcast_to(
      jnp.arange(10), (TREE.prompts, 10)))], axis=1)
  skill_PNV = tabular.around(keys[2], 1.5) * jax.nn.one_hot(own_PN, 10)
  reward_PL = both_PL if both else last_PL

  def verify(batch, **_):
    return dict(outcome_B=1.0 * reward_PL[batch.prompt_B, TREE.leaf_B(batch)])

  return tabular.Environment(verify, lambda x: dict(both=TREE.expected_P(x, both_PL).mean()),
                             start=TREE.start(keys[3], 1.0) + skill_PNV)


def arms():
  def arm(both):
    return tabular.arm(r_horizon.get_config(), TREE, functools.partial(environment, both=both),
                       "both", steps=150)
  return {"both answers": arm(True), "the last": arm(False)}
