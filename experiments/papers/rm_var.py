"""Completions of a hidden quality in [0, 1] and two reward models: one orders all of
them right and has a fifth of the scale, one has the whole scale and errs by 0.2.
The quality that RLOO reaches in equal steps, without a KL term. That the second is
the less accurate and varies more, over all completions, is checked."""
import jax
import numpy as np

from configs.papers import rloo
from experiments.worlds import tabular
from rlx.evals import reward_model

PAPER = dict(
    title="What Makes a Reward Model a Good Teacher? An Optimization Perspective",
    arxiv="2503.15477",
    claims=("a less accurate reward model can teach faster than a perfect one, if its "
            "rewards vary more under the policy",),
    confidence="medium")
CLAIM = 0
MEASURE = "quality after 100 steps of the varied reward less that of the accurate one"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  keys = jax.random.split(jax.random.key(0))
  quality_PL = jax.random.uniform(keys[0], (8, 64))
  accurate_PL = 0.4 + 0.2 * quality_PL
  varied_PL = quality_PL + 0.2 * jax.random.normal(keys[1], (8, 64))

  def pairs(score_PL):
    """Accuracy on all pairs of neighbours."""
    better = np.asarray(quality_PL[:, :-1] > quality_PL[:, 1:])
    first, second = np.asarray(score_PL[:, :-1]), np.asarray(score_PL[:, 1:])
    return reward_model.pair_accuracy(np.where(better, first, second).ravel(),
                                      np.where(better, second, first).ravel())
  variance = reward_model.group_variance
  assert pairs(accurate_PL) > pairs(varied_PL)
  assert variance(accurate_PL) < variance(varied_PL)

  def quality(reward_PL):
    c = tabular.changed(rloo.get_config(), kl__coef=0.0)
    judge = lambda key, logits_PNV, batch: dict(
        outcome_B=reward_PL[batch.prompt_B, world.leaf_B(batch)])
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(quality=world.expected_P(x, quality_PL).mean()),
        seeds=seeds, steps=100, lr=10.0, start=lambda key: world.start(key, 1.0))
    return found["quality"][:, -1]

  return quality(varied_PL) - quality(accurate_PL)
