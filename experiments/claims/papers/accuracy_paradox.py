"""Reward models of one training, stopped after 3, 10, 30, 100 and 300 steps, in the environment of
environments/reward_models.py: few pairs of the initial policy, a quarter of which have the wrong
preference. The accuracy of each is measured on new pairs of the initial policy without wrong ones.

PPO is trained against the model of the middle rank by accuracy, and against the most accurate one.
The gold score after 400 steps is measured.
"""
import functools

import jax
import jax.numpy as jnp

from configs.papers import accuracy_paradox
from experiments.claims.environments import reward_models, tabular

MEASURE = ("gold score after 400 steps learned from the reward model of the middle accuracy minus "
           "that from the most accurate one")
MARGIN, RATE = 0.1, 10.0
FIRST = ("underpowered", None)
TREE, STOPS, NEW = reward_models.TREE, (3, 10, 30, 100, 300), 2000


def models(key):
  """Returns (scores_EL, accuracy_E) of the reward models."""
  keys = jax.random.split(key, 3)
  logps_L = TREE.leaf_logps(reward_models.start(None))[0]
  pairs_N = reward_models.pairs(keys[0], logps_L, reward_models.GOLD_L, reward_models.PAIRS)
  better_N, worse_N, valid_N = reward_models.pairs(
      keys[1], logps_L, reward_models.GOLD_L, NEW, flips=0.0)
  start_D = jax.random.normal(keys[2], (12,))
  scores_EL = jnp.stack([reward_models.COUNTS_LV @ reward_models.fit(
      start_D, reward_models.COUNTS_LV, pairs_N, steps) for steps in STOPS])
  return scores_EL, jnp.mean(scores_EL[:, better_N] > scores_EL[:, worse_N], axis=1, where=valid_N)


def environment(key, *, rank):
  scores_EL, accuracy_E = models(key)
  score_L = scores_EL[jnp.argsort(accuracy_E)[rank]]

  def verify(batch, **_):
    return dict(outcome_B=jnp.zeros(len(batch.prompt_B)),
                scores_BE=score_L[TREE.leaf_B(batch)][:, None])

  return tabular.Environment(verify, TREE.means(gold=reward_models.GOLD_L),
                             start=reward_models.start(None))


def arms():
  return {name: tabular.arm(accuracy_paradox.get_config(), TREE,
                            functools.partial(environment, rank=rank), "gold", steps=400)
          for name, rank in (("middle", len(STOPS) // 2), ("most accurate", -1))}
