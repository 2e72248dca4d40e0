"""Answers (experiments/environments/answers.py) of one token, likely after sound reasoning, one of
ten. A model as verifier sees one drawn answer and errs on one verdict in ten.

The gradient of the answer's own log-prob, which the config lacks, would not show here.
"""
import jax
import jax.numpy as jnp

from configs.papers import verifree
from experiments.environments import answers
from experiments.environments import tabular

CLAIM = 0
MEASURE = ("mean share of sound reasonings over 200 steps from the answer's "
           "probability less that from verdicts")
MARGIN, RATE = 0.05, 50.0
FIRST = ("confirmed", None)
ILLUSTRATION = ("A verdict is a noisy draw from the same probability: its gradient has the same "
                "direction and more noise.")


def drawn(key):
  keys = jax.random.split(key)
  sound_PL, (likely, unlikely) = answers.sound(keys[0]), tabular.around(keys[1], (0.8, 0.2))
  return jnp.log(jnp.where(sound_PL, likely, unlikely))[..., None], sound_PL


def arms():
  c = verifree.get_config()
  verdicts = tabular.changed(c, rewards__outcome=dict(name="outcome.verdict", coef=1.0))
  return answers.arms({"probability": c, "verdicts": verdicts},
                      drawn, tabular.mean("value"), flipped=0.1)
