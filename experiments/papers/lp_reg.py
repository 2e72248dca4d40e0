"""Rare first tokens that are worth learning and look bad at first.

Tokens 0-3 are common and right by luck, half of the time. 4 and 5 are rare (3% each)
and right only if one second token of eight follows, which can be learned. 6 and 7 are
noise (0.2%) and wrong. Eight steps a batch, as the paper's off-policy runs: on-policy
the proxy is the policy but for the noise, 0.3% here. Lp-Reg against coef 0.
"""
import jax
import jax.numpy as jnp

from configs.papers import lp_reg
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy after 300 steps with the divergence less that without"
REVISED = "the baseline did not learn"
LUCK = 0.5
START = jnp.array([0, 0, 0, 0, -2, -2, -5, -5.0])


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)

  def chance(prompt, first, second):
    """Of being right."""
    return jnp.where(first < 4, LUCK, (first < 6) & (second == prompt))

  def judge(key, logits_PNV, batch):
    del logits_PNV
    luck_B = jax.random.uniform(key, batch.prompt_B.shape)
    return dict(outcome_B=1.0 * (luck_B < chance(batch.prompt_B, *batch.tokens_BT.T)))

  chance_PL = chance(jnp.arange(8)[:, None], *jnp.asarray(world.leaves[0]).T[:, None])

  def accuracy(coef):
    c = tabular.changed(lp_reg.get_config("off"), rollouts__per_prompt=16,
                        learner__epochs=8, learner__loss__coef=coef)
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, chance_PL).mean()),
        seeds=seeds, steps=300, lr=10.0,
        start=lambda key: world.start().at[:, 0].set(START))
    return found["accuracy"][:, -1]

  return accuracy(1.0) - accuracy(0.0)
