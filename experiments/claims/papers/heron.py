"""One completion in five is right, the first factor; the second one is a grade, uniform in [0, 1].
The gold score is the first factor plus about half of the second one, drawn for each seed.

The rival's reward is a sum of both factors. Its weights, 1 and 1/2, are the mean of those of the
gold score, which is the best that tuning them could find. Ranked factors have the thresholds of the
config and read no weights.
"""
import jax
import jax.numpy as jnp

from configs.papers import heron
from experiments.claims.environments import tabular, verdicts

MEASURE = "gold score after 150 steps with ranked factors minus 95% of that with tuned weights"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key):
  keys = jax.random.split(key, 3)
  right_PL = 1.0 * verdicts.drawn(keys[0], TREE, 0.2)
  factors_PLE = jnp.stack([right_PL, jax.random.uniform(keys[1], right_PL.shape)], axis=2)
  gold_PL = factors_PLE @ jnp.stack([jnp.ones(()), tabular.around(keys[2], 0.5)])
  return tabular.Environment(TREE.verifier(outcome_B=right_PL, scores_BE=factors_PLE),
                             TREE.means(gold=gold_PL))


def arms():
  c = heron.get_config()
  weighted = tabular.changed(
      c, rewards=dict(first=dict(name="outcome.score", coef=1.0, index=0),
                      second=dict(name="outcome.score", coef=0.5, index=1)),
      advantages=dict(total=dict(name="group.grpo"), whiten=False))
  return tabular.arms({"ranked": c, "tuned weights": weighted}, TREE, environment, "gold",
                      steps=150)


def compare(ranked_I, weighted_I): return ranked_I - 0.95 * weighted_I
