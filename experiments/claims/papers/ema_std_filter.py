"""Simulates answers (environments/answers.py) of one token, which is about
twice as likely after sound reasoning, one reasoning of ten, and varies a little with any
reasoning.

GRPO divides by the standard deviation of a group. Where all eight reasonings are sound,
or none is, this amplifies the noise to advantages of about 1. One arm filters such groups
out, the other learns from all groups, and the share of sound reasonings is compared.
"""
import jax
import jax.numpy as jnp

from configs.papers import ema_std_filter
from experiments.claims.environments import answers, tabular

MEASURE = ("share of sound reasonings after 200 steps with the filter by spread minus that without "
           "it")
MARGIN, RATE = 0.05, 2.0
FIRST = ("confirmed", "the rewards were verdicts with noise and not likelihoods, as in the config")


def drawn(key):
  keys = jax.random.split(key, 3)
  sound_PL = answers.sound(keys[0])
  low, gain, spread = tabular.around(keys[1], [0.3, 0.3, 0.03])
  chance_PL = low + gain * sound_PL + spread * jax.random.normal(keys[2], sound_PL.shape)
  base_PM = jnp.full((len(sound_PL), 1), jnp.log(low))
  return jnp.log(jnp.clip(chance_PL, 0.01, 0.99))[..., None], sound_PL, base_PM


def arms():
  c = ema_std_filter.get_config()
  return answers.arms(
      {"filter": c, "all groups": tabular.changed(c, learner__reward_std_filter__name=None)},
      drawn, "value")
