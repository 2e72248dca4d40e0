"""Simulates answers (environments/answers.py) of 64 tokens. Two of the
tokens, drawn from the seed, are much more likely after sound reasoning, which is one
reasoning of ten; the log-probabilities of the others vary a little with any reasoning.
One arm weights tokens by their spread, the other takes their plain mean, and the learned
share of sound reasonings is compared.
"""
import jax
import jax.numpy as jnp

from configs.papers import dro_r3
from experiments.claims.environments import answers, tabular

MEASURE = ("share of sound reasonings with tokens weighted by their spread minus that without "
           "weights")
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)


def drawn(key):
  keys = jax.random.split(key, 4)
  sound_PL = answers.sound(keys[0])
  is_key_M = jax.random.permutation(keys[1], jnp.arange(64) < 2)
  drop = tabular.around(keys[2], 1.0)
  logps_PLM = (-1 + 0.3 * jax.random.normal(keys[3], (*sound_PL.shape, 64))
               - drop * (is_key_M[None, None] & ~sound_PL[..., None]))
  base_PM = jnp.broadcast_to(-1 - drop * is_key_M[None], (len(sound_PL), 64))
  return jnp.minimum(logps_PLM, -0.01), sound_PL, base_PM


def arms():
  def config(weight):
    return tabular.changed(dro_r3.get_config(), rewards__outcome__token_weight=weight)
  return answers.arms({"by spread": config("group_std"), "plain mean": config("none")},
                      drawn, "value")
