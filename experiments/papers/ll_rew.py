"""Answers (experiments/worlds/answers.py) of 1 and of 64 tokens, each token twice as likely
after sound reasoning, one of ten. Adam, so that the size of a reward is no matter."""
import jax
import jax.numpy as jnp
import numpy as np
import optax

from configs.papers import ll_rew
from experiments.worlds import answers
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("share of sound reasonings, at the worse length, from log-probs less "
           "that from probabilities")


def effects(seeds):
  keys = jax.random.split(jax.random.key(0), 2)
  sound_PL = answers.sound(keys[0])
  logps_PLM = jnp.minimum(
      jnp.log(jnp.where(sound_PL, 0.6, 0.3))[..., None]
      + 0.2 * jax.random.normal(keys[1], (*sound_PL.shape, 64)), -0.01)

  def share(agg):
    c = tabular.changed(ll_rew.get_config(), rewards__outcome__agg=agg)
    return np.minimum(*(answers.learned(
        c, logps_PLM[..., :m], sound_PL, seeds, lr=0.05, optimizer=optax.adam)[:, -1]
        for m in (1, 64)))

  return share("sum_lp") - share("prod_p")
