"""What Makes a Reward Model a Good Teacher? An Optimization Perspective (arXiv:2503.15477).

Completions of a hidden quality in [0, 1] and two reward models: one orders all of
them right and has a fifth of the scale, one has the whole scale and errs by 0.2, so
that it is the less accurate and varies more. The quality that RLOO reaches in equal steps.

Confidence in the formula: medium.
"""
import functools

import jax

from configs.papers import rloo
from experiments.environments import tabular

CLAIMS = (
    "a less accurate reward model can teach faster than a perfect one, if its rewards vary more "
    "under the policy",
)
CLAIM = 0
MEASURE = "quality after 100 steps of the varied reward less that of the accurate one"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key, *, varied):
  keys = jax.random.split(key, 4)
  quality_PL = jax.random.uniform(keys[0], (8, 64))
  reward_PL = (quality_PL + tabular.around(keys[1], 0.2) * jax.random.normal(keys[2], (8, 64))
               if varied else 0.4 + tabular.around(keys[1], 0.2) * quality_PL)
  def verify(batch, **_):
    return dict(outcome_B=reward_PL[batch.prompt_B, TREE.leaf_B(batch)])
  return tabular.Environment(
      verify, lambda x: dict(quality=TREE.expected_P(x, quality_PL).mean()),
      start=TREE.start(keys[3], 1.0))


def arms():
  def arm(varied):
    return tabular.arm(rloo.get_config(), TREE, functools.partial(environment, varied=varied),
                       "quality", steps=100)
  return {"varied": arm(True), "accurate": arm(False)}
