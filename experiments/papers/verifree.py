"""The policy learns reasonings (experiments/environments/answers.py), of which one in ten is
sound. The reference answer has one token and is likely after sound reasoning. RLOO on the
probability of the answer is compared with RLOO on verdicts. The verdict of a model as verifier
judges one sampled answer and is wrong in one case in ten. Measured is the mean share of sound
reasonings over training.

The gradient of the answer's own log-probability, which the config does not have, would make no
difference in this environment.
"""
import jax
import jax.numpy as jnp

from configs.papers import verifree
from experiments.environments import answers
from experiments.environments import tabular

CLAIM = 0
MEASURE = ("mean share of sound reasonings over 200 steps from the answer's probability minus that "
           "from verdicts")
MARGIN, RATE = 0.05, 50.0
FIRST = ("confirmed", None)
ILLUSTRATION = ("A verdict is a noisy draw from the same probability, so its gradient has the same "
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
