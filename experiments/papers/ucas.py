"""Completions of up to four tokens, of which token 0 ends one; a fifth is right.

GRPO against the same with its advantages shaped by how sure the policy is. Entropy of
the policy over whole completions.
"""
import jax
import jax.numpy as jnp

from configs.papers import ucas
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "entropy over completions after 200 steps with UCAS less that with GRPO, nats"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=4, eos=True)
  # By the node after the last token.
  right_PN = jax.random.uniform(jax.random.key(0), (8, 4 * world.nodes + 1)) < 0.2

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    last_B = jnp.sum(batch.mask_BT, axis=1) - 1
    end_B = jnp.take_along_axis(
        4 * batch.nodes_BT + batch.tokens_BT + 1, last_B[:, None], axis=1)[:, 0]
    return dict(outcome_B=right_PN[batch.prompt_B, end_B] * 1.0)

  def measure(logits_PNV):
    logps_PL = world.leaf_logps(logits_PNV)
    return dict(entropy=-world.expected_P(logits_PNV, logps_PL).mean())

  def entropy(**changes):
    c = tabular.changed(ucas.get_config(), rollouts__per_prompt=16, **changes)
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=200, lr=5.0)
    return found["entropy"][:, -1]

  return entropy() - entropy(advantages__outcome=dict(name="group.grpo"))
