"""Answers (experiments/worlds/answers.py) of four tokens: three that sound reasoning, one of
ten, makes likelier, and one that could be worded otherwise, whose chance has nothing
to do with it and spreads widely."""
import jax
import jax.numpy as jnp

from configs.papers import rlpr
from experiments.worlds import answers
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("share of sound reasonings learned from the mean probability less that "
           "from the product")


def effects(seeds):
  keys = jax.random.split(jax.random.key(0), 3)
  sound_PL = answers.sound(keys[0])
  key_PLM = (jnp.log(jnp.where(sound_PL, 0.6, 0.3))[..., None]
             + 0.2 * jax.random.normal(keys[1], (*sound_PL.shape, 3)))
  wording_PL = -2.5 + 1.5 * jax.random.normal(keys[2], sound_PL.shape)
  logps_PLM = jnp.minimum(jnp.concatenate([key_PLM, wording_PL[..., None]], axis=2), -0.05)
  base_PM = jnp.broadcast_to(jnp.array([*[jnp.log(0.3)] * 3, -2.5]), (16, 4))

  def share(agg):
    c = tabular.changed(rlpr.get_config(), rewards__outcome__agg=agg)
    return answers.learned(c, logps_PLM, sound_PL, seeds, base_PM=base_PM, lr=10.0)[:, -1]

  return share("mean_p") - share("prod_p")
