"""Plans (environments/answers.py) lower a frozen model's perplexity of the next
chapter, which is about 10. The improvement in percent is the plan's quality, which is normally
distributed, plus noise with heavy tails. Rewards by thresholds of the improvement are compared
with the improvement itself as the reward, by the quality of the plans that are learned.
"""
import jax
import jax.numpy as jnp

from configs.papers import vr_cli
from experiments.claims.environments import answers, tabular

CLAIM = 1
MEASURE = ("quality of plans learned from thresholds of the improvement minus that from the "
           "improvement itself")
MARGIN, RATE = 0.1, 10.0
FIRST = ("not seen", None)


def drawn(key):
  keys = jax.random.split(key, 3)
  quality_PL = jax.random.normal(keys[0], (16, 64))
  percent_PL = jnp.minimum(quality_PL + jax.random.t(keys[1], 2.0, (16, 64)), 50.0)
  perplexity_P1 = tabular.around(keys[2], jnp.full((16, 1), 10.0))
  return (-jnp.log(perplexity_P1 * (1 - percent_PL / 100))[..., None], quality_PL,
          -jnp.log(perplexity_P1))


def arms():
  c = vr_cli.get_config()
  return answers.arms(
      {"thresholds": c, "improvement": tabular.changed(c, rewards__outcome__post="none")},
      drawn, "value")
