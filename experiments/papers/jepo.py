"""Answers (experiments/environments/answers.py) of eight tokens that can be worded in many
ways: a verifier that accepts only the reference itself accepts one in 60 answers after sound
reasoning, which is one reasoning in ten, and one in 1500 after other reasoning. Learning from
the bound on the answer's log-prob is compared with learning from verdicts.
"""
import jax
import jax.numpy as jnp

from configs.papers import jepo
from experiments.environments import answers
from experiments.environments import tabular

CLAIM = 0
MEASURE = ("share of sound reasonings from the bound on the answer's log-prob minus that from "
           "verdicts")
MARGIN, RATE = 0.05, 50.0
FIRST = ("confirmed", None)
ILLUSTRATION = ("The bound is computed from the probability with which the verdicts are drawn, so "
                "it is the same signal without noise.")


def drawn(key):
  keys = jax.random.split(key, 3)
  sound_PL, (good, other) = answers.sound(keys[0]), tabular.around(keys[1], (0.6, 0.4), 0.1)
  return (jnp.log(jnp.where(sound_PL, good, other))[..., None]
          + 0.1 * jax.random.normal(keys[2], (*sound_PL.shape, 8)), sound_PL)


def arms():
  c = jepo.get_config()
  return answers.arms({
      "bound": c,
      "verdicts": tabular.changed(c, rewards__outcome=dict(name="outcome.verdict", coef=1.0),
                                  advantages__outcome=dict(name="group.rloo")),
  }, drawn, "value")
