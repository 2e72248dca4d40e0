"""ReMax against REINFORCE without a baseline, with rare right completions.

Each step samples four completions for each prompt. The baseline of ReMax is the verdict of the
greedy completion. The cost of sampling it is not counted: both arms train for the same number
of steps. The accuracy is measured.
"""
import jax.numpy as jnp

from configs.papers import remax
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy of ReMax after 60 steps minus that of REINFORCE without a baseline"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
PROBLEM, GROUP = sparse.rare(), 4


def environment(key):
  plain = PROBLEM.environment(key)
  def verify(batch, key, logits_PNV):
    greedy = PROBLEM.tree.sample(key, 1e4 * logits_PNV, 1)  # Takes the most likely token.
    greedy_P = plain.verify(greedy)["outcome_B"]
    return plain.verify(batch) | dict(greedy_B=jnp.repeat(greedy_P, GROUP))
  return plain._replace(verify=verify)


def arms():
  c = tabular.changed(remax.get_config(), rollouts__per_prompt=GROUP)
  none = tabular.changed(c, advantages__outcome=dict(name="batch.reinforce"))
  return tabular.arms({"ReMax": c, "no baseline": none},
                      PROBLEM.tree, environment, "accuracy", steps=60)
