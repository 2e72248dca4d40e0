"""About a tenth of 64 completions are right. The verifier accepts no wrong completion, but only
one in seven of the right ones, so many prompts have no completion that it accepts.

A score ranks right completions above wrong ones, with noise, except for a few wrong
completions that receive the highest scores. HERO is compared with GRPO on the verdict and with
GRPO on the score, after equally many steps.
"""
import jax
import jax.numpy as jnp

from configs.papers import hero
from experiments.claims.environments import tabular, verdicts

MEASURE = "true accuracy with HERO minus that with the rival"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=16, vocab=4, length=3)


def environment(key):
  keys = jax.random.split(key, 5)
  share, recall, fooled, gap, noise = tabular.around(keys[0], [0.1, 1 / 7, 0.03, 0.2, 0.15])
  right_PL = verdicts.drawn(keys[1], TREE, share)
  accepted_PL = right_PL & verdicts.drawn(keys[2], TREE, recall)
  fooled_PL = ~right_PL & verdicts.drawn(keys[3], TREE, fooled)
  scores_PL = 0.4 + gap * right_PL + noise * jax.random.normal(keys[4], right_PL.shape)
  scores_PL = jnp.where(fooled_PL, 0.95, scores_PL)
  return tabular.Environment(TREE.verifier(outcome_B=accepted_PL, scores_BE=scores_PL[..., None]),
                             TREE.means(accuracy=right_PL))


def arms():
  c = hero.get_config()
  return tabular.arms(
      {"HERO": c, "verdict only": tabular.grpo(c), "score only": tabular.grpo(c, "shaping.plain")},
      TREE, environment, "accuracy", steps=150)
