"""Answers (experiments/worlds/answers.py) of eight tokens that can be worded in many ways: a
verifier that wants the reference itself finds it in one of 60 after sound reasoning,
one of ten, and in one of 1500 after other."""
import jax
import jax.numpy as jnp

from configs.papers import jepo
from experiments.worlds import answers
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("share of sound reasonings learned from the bound on the answer's log-"
           "prob less that from verdicts")


def effects(seeds):
  keys = jax.random.split(jax.random.key(0), 2)
  sound_PL = answers.sound(keys[0])
  logps_PLM = (jnp.log(jnp.where(sound_PL, 0.6, 0.4))[..., None]
               + 0.1 * jax.random.normal(keys[1], (*sound_PL.shape, 8)))
  bound = jepo.get_config()
  verdicts = tabular.changed(
      bound, rewards__outcome=dict(name="outcome.verdict", coef=1.0),
      advantages__outcome=dict(name="group.rloo"))
  share = lambda c: answers.learned(c, logps_PLM, sound_PL, seeds)[:, -1]
  return share(bound) - share(verdicts)
