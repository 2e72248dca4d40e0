"""The mean probability of the answer's tokens as the reward against their product.

The answers (environments/answers.py) have four tokens. Three are likelier after
sound reasoning, which is one in ten. The fourth could be worded otherwise; its probability is
independent of the reasoning and has a wide spread. The share of sound reasonings that the
policy samples after training is measured.
"""
import jax
import jax.numpy as jnp

from configs.papers import rlpr
from experiments.claims.environments import answers, tabular

MEASURE = "share of sound reasonings learned from the mean probability minus that from the product"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)


def drawn(key):
  keys = jax.random.split(key, 3)
  sound_PL = answers.sound(keys[0])
  key_PLM = (jnp.log(jnp.where(sound_PL, 0.6, 0.3))[..., None]
             + 0.2 * jax.random.normal(keys[1], (*sound_PL.shape, 3)))
  wording_PL = -2.5 + 1.5 * jax.random.normal(keys[2], sound_PL.shape)
  logps_PLM = jnp.minimum(jnp.concatenate([key_PLM, wording_PL[..., None]], axis=2), -0.05)
  base_PM = jnp.broadcast_to(jnp.array([*[jnp.log(0.3)] * 3, -2.5]), (16, 4))
  return logps_PLM, sound_PL, base_PM


def arms():
  def config(agg):
    return tabular.changed(rlpr.get_config(), rewards__outcome__agg=agg)
  return answers.arms({"mean probability": config("mean_p"), "product": config("prod_p")},
                      drawn, "value")
