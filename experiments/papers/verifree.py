"""Answers (experiments/worlds/answers.py) of one token, likely after sound reasoning, one of
ten. A model as verifier sees one drawn answer and errs on one verdict in ten.

The gradient of the answer's own log-prob, which the config lacks, would not show here.
"""
import jax
import jax.numpy as jnp

from configs.papers import verifree
from experiments.worlds import answers
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("mean share of sound reasonings over 200 steps from the answer's "
           "probability less that from verdicts")


def effects(seeds):
  sound_PL = answers.sound(jax.random.key(0))
  logps_PLM = jnp.log(jnp.where(sound_PL, 0.8, 0.2))[..., None]
  probability = verifree.get_config()
  verdicts = tabular.changed(
      probability, rewards__outcome=dict(name="outcome.verdict", coef=1.0))
  share = lambda c: answers.learned(
      c, logps_PLM, sound_PL, seeds, flipped=0.1).mean(axis=1)
  return share(probability) - share(verdicts)
