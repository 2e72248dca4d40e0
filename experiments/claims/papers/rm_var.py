"""What Makes a Reward Model a Good Teacher? An Optimization Perspective (arXiv:2503.15477).

Every completion has a hidden quality in [0, 1]. Two reward models are compared. The accurate
one ranks all completions correctly, but its rewards span a fifth of the scale. The varied one
spans the whole scale and has errors with standard deviation 0.2, so that it is less accurate
and its rewards vary more. RLOO is trained on each of them, and the expected quality of the
policy is measured after equally many steps.

Confidence in the formula: medium.
"""
import functools

import jax

from configs.papers import rloo
from experiments.claims.environments import tabular

CLAIMS = ("a less accurate reward model can teach faster than a perfect one, if its rewards vary "
          "more under the policy",)
MEASURE = "quality after 100 steps with the varied reward model minus that with the accurate one"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key, *, varied):
  keys = jax.random.split(key, 4)
  quality_PL = jax.random.uniform(keys[0], (8, 64))
  reward_PL = (quality_PL + tabular.around(keys[1], 0.2) * jax.random.normal(keys[2], (8, 64))
               if varied else 0.4 + tabular.around(keys[1], 0.2) * quality_PL)
  return tabular.Environment(TREE.verifier(outcome_B=reward_PL), TREE.means(quality=quality_PL),
                             start=TREE.start(keys[3], 1.0))


def arms():
  return {name: tabular.arm(rloo.get_config(), TREE, functools.partial(environment, varied=varied),
                            "quality", steps=100)
          for name, varied in (("varied", True), ("accurate", False))}
