"""One in 20 of 64 completions is right, and the strict verifier rejects four in ten of these for
their form, so that some prompts have no completion that it accepts.

The second verifier stands for a small model. It accepts 95% of the right completions and 2% of
the wrong ones, always the same ones, so that the policy can exploit it. The strict verifier
with the second one is compared with the strict verifier alone, by the share of completions that
are truly right after training.
"""
import jax
import jax.numpy as jnp

from configs.papers import tinyv
from experiments.claims.environments import tabular

MEASURE = ("share of right completions learned with the second verifier minus that with the strict "
           "one alone")
MARGIN, RATE = 0.05, 10.0
FIRST = ("opposite", None)
TREE = tabular.Tree(prompts=16, vocab=8, length=2)


def environment(key):
  keys = jax.random.split(key)
  draws_3PL = jax.random.uniform(keys[0], (3, 16, 64))
  right, strict, missed, farmed = tabular.around(keys[1], (0.05, 0.6, 0.05, 0.02))
  right_PL = draws_3PL[0] < right
  strict_PL = right_PL & (draws_3PL[1] < strict)
  second_PL = draws_3PL[2] < jnp.where(right_PL, 1 - missed, farmed)
  return tabular.Environment(TREE.verifier(outcome_B=strict_PL, scores_BE=second_PL[..., None]),
                             TREE.means(rate=right_PL))


def arms():
  c = tinyv.get_config()
  return tabular.arms(
      {"with the second": c, "strict alone": tabular.changed(c, rewards__outcome__weight=0.0)},
      TREE, environment, "rate", steps=200)
