"""Answers (experiments/worlds/answers.py) of 64 tokens: two of them much likelier after sound
reasoning, one of ten; the log-probs of the others vary a little with any reasoning."""
import jax
import jax.numpy as jnp

from configs.papers import dro_r3
from experiments.worlds import answers
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("share of sound reasonings learned with tokens weighted by their spread"
           " less that without")


def effects(seeds):
  keys = jax.random.split(jax.random.key(0), 2)
  sound_PL = answers.sound(keys[0])
  logps_PLM = -1 + 0.3 * jax.random.normal(keys[1], (*sound_PL.shape, 64))
  logps_PLM = logps_PLM.at[:, :, :2].add(jnp.where(sound_PL, 0.0, -1.0)[..., None])
  base_PM = jnp.full((16, 64), -1.0).at[:, :2].add(-1.0)

  def share(weight):
    c = tabular.changed(dro_r3.get_config(), rewards__outcome__token_weight=weight)
    return answers.learned(c, jnp.minimum(logps_PLM, -0.01), sound_PL, seeds, lr=10.0,
                           base_PM=base_PM)[:, -1]

  return share("group_std") - share("none")
