"""The overoptimised environment of reward_models, with reward models of one hidden layer.

Pretraining is simulated by the layer, which is random, and fine-tuning by a head that learns
from pairs, starting near 0. The five members of an ensemble differ in layer and head in one
arm, and only in the head in the other. Both arms have the same pairs, and the policy is trained
on the config's reward, the mean minus the standard deviation.
"""
import functools

import jax
import jax.numpy as jnp

from configs.papers import herding
from experiments.claims.environments import reward_models

MEASURE = "gold score from members with different layers minus that from heads on one layer"
MARGIN, RATE = 0.1, 10.0
FIRST = ("not recorded", "the single reward model was not overoptimised")
MEMBERS, HIDDEN = 5, 32


def ensemble(key, layers):
  """Returns scores_LE of MEMBERS reward models, which have `layers` different layers."""
  keys = jax.random.split(key, 4)
  layer_MVH = jax.random.normal(keys[0], (layers, 12, HIDDEN))
  bias_M1H = jax.random.normal(keys[1], (layers, 1, HIDDEN))
  hidden_MLH = jnp.tanh(reward_models.COUNTS_LV @ layer_MVH + bias_M1H) / HIDDEN**0.5
  hidden_ELH = jnp.repeat(hidden_MLH, MEMBERS // layers, axis=0)
  heads_EH = 0.3 * jax.random.normal(keys[2], (MEMBERS, HIDDEN))
  logps_L = reward_models.TREE.leaf_logps(reward_models.start(None))[0]
  pairs_N = reward_models.pairs(keys[3], logps_L, reward_models.GOLD_L, reward_models.PAIRS)
  return jax.vmap(reward_models.bradley_terry, in_axes=(0, 0, None), out_axes=1)(
      heads_EH, hidden_ELH, pairs_N)


def arms():
  def arm(layers):
    drawn = functools.partial(ensemble, layers=layers)
    return reward_models.arms({layers: herding.get_config()}, "gold", drawn=drawn,
                              steps=200)[layers]
  return {"different layers": arm(MEMBERS), "one layer": arm(1)}
