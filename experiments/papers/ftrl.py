"""Simulates episodes with two open questions. For each of them there are two calls, one of which
solves it with a probability near 0.9 and the other with one near 0.3. A turn makes any of the
four calls at once, or answers; the answer is right if both questions are solved by at most
three calls in two turns.

The rewards of a turn of calls are 2 solved / (calls + 1), as in FTRL, and for two rivals the
share of calls that solve something and the number that do. What a turn without calls is rewarded
for is the same for all. The probability of a right answer is measured.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import ftrl
from experiments.environments import tabular
from experiments.environments import turns

CLAIM = 0
MEASURE = "accuracy learned from the balanced reward minus that from the rival"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "this is the first version")
ILLUSTRATION = ("The limits of turns and calls are chosen here: precision has no higher reward for "
                "two calls at once, and completeness costs nothing for useless calls.")
# Token 0 answers, the bits of all others are calls.
TREE = tabular.Tree(prompts=4, vocab=16, length=3, eos=True)
CALLS_V4 = np.arange(16)[:, None] >> np.arange(4) & 1 == 1
MOST = 3  # Calls of an episode.
REWARDS = {
    "balanced": lambda solved, calls: 2 * solved / (calls + 1),
    "precision": lambda solved, calls: solved / jnp.maximum(calls, 1),
    "completeness": lambda solved, calls: solved,
}


def environment(key, *, reward):
  keys = jax.random.split(key)
  good_P2 = jax.random.bernoulli(keys[0], shape=(TREE.prompts, 2))
  # Of each question of a prompt: which of its two calls is the better one.
  good_P22 = jnp.stack([good_P2, ~good_P2], axis=2)
  better_2, other_2 = tabular.around(keys[1], [[0.9] * 2, [0.3] * 2], spread=0.1)
  chance_P22 = jnp.where(good_P22, better_2[None, :, None], other_2[None, :, None])

  def made(tokens_BT, mask_BT):
    """Returns calls_BT22, which calls the turns make."""
    calls_BT4 = jnp.asarray(CALLS_V4)[tokens_BT] & mask_BT[..., None]
    return calls_BT4.reshape(*calls_BT4.shape[:-1], 2, 2)

  def answered(tokens_BT, mask_BT, calls_BT22):
    """Returns whether the last turn answers after few enough calls."""
    return ((tokens_BT == 0) & mask_BT).any(axis=1) & (calls_BT22.sum((1, 2, 3)) <= MOST)

  def verify(batch, key, **_):
    calls_BT22 = made(batch.tokens_BT, batch.mask_BT)
    draws_BT22 = jax.random.uniform(key, calls_BT22.shape)
    works_BT2 = (calls_BT22 & (draws_BT22 < chance_P22[batch.prompt_B][:, None])).any(axis=3)
    before_BT2 = jnp.cumsum(works_BT2, axis=1) - works_BT2 > 0
    solved_BT = (works_BT2 & ~before_BT2).sum(axis=2)
    unsolved_BT = 2 - (works_BT2 | before_BT2).sum(axis=2)
    calls_BT = calls_BT22.sum(axis=(2, 3))
    is_right_B = works_BT2.any(axis=1).all(axis=1) & answered(
        batch.tokens_BT, batch.mask_BT, calls_BT22)
    # Of an answer: 1 if it is right, as no question is open then, and 0.5 if it is wrong although
    # none is, after too many calls.
    answer_BT = jnp.where(is_right_B[:, None], 1.0, 0.5 * (unsolved_BT == 0))
    rewards_BT = jnp.where(calls_BT > 0, reward(solved_BT, calls_BT), answer_BT)
    return dict(outcome_B=1.0 * is_right_B, turn_rewards_BT=rewards_BT, **turns.columns(batch))

  tokens_LT, mask_LT = map(jnp.asarray, TREE.leaves)
  calls_LT22 = made(tokens_LT, mask_LT)

  def right_L(chance_22):
    """The probability that each episode's answer is right."""
    failing_LT22 = jnp.where(calls_LT22, 1 - chance_22[None, None], 1.0)
    solved_L = (1 - failing_LT22.prod(axis=(1, 3))).prod(axis=1)
    return jnp.where(answered(tokens_LT, mask_LT, calls_LT22), solved_L, 0.0)

  right_PL = jax.vmap(right_L)(chance_P22)
  return tabular.Environment(verify, lambda x: dict(accuracy=TREE.expected_P(x, right_PL).mean()))


def arms():
  return {name: tabular.arm(ftrl.get_config(), TREE, functools.partial(environment, reward=reward),
                            "accuracy", steps=100)
          for name, reward in REWARDS.items()}
