"""Plans (experiments/worlds/answers.py) that change a frozen model's perplexity of the next
chapter, 10, by their quality and by chance, in percent: normal, and with heavy tails."""
import jax
import jax.numpy as jnp

from configs.papers import vr_cli
from experiments.worlds import answers
from experiments.worlds import tabular

CLAIM = 1
MEASURE = ("quality of plans learned from thresholds of the improvement less that "
           "from the improvement")


def effects(seeds):
  keys = jax.random.split(jax.random.key(0), 2)
  quality_PL = jax.random.normal(keys[0], (16, 64))
  percent_PL = jnp.minimum(quality_PL + jax.random.t(keys[1], 2.0, (16, 64)), 50.0)
  logps_PLM = -jnp.log(10 * (1 - percent_PL / 100))[..., None]

  def quality(post):
    c = tabular.changed(vr_cli.get_config(), rewards__outcome__post=post)
    return answers.learned(c, logps_PLM, quality_PL, seeds, lr=10.0,
                           base_PM=jnp.full((16, 1), -jnp.log(10.0)))[:, -1]

  return quality("thresholds") - quality("none")
