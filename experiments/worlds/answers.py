"""A world for rewards of likelihood: reasonings that make a reference answer likelier.

Only the reasoning is sampled and learned, one of 64 for each prompt. What the policy
says of the answer after it is a fixed table: no reward of likelihood sends a gradient
through it, and a table would only learn its own prompts' answers by heart.
"""
import jax
import jax.numpy as jnp

from experiments.worlds import tabular

WORLD = tabular.Tree(prompts=16, vocab=8, length=2)
LEAVES = 64


def sound(key, share=0.1):
  """is_sound_PL: which reasonings are, at random."""
  return jax.random.uniform(key, (WORLD.prompts, LEAVES)) < share


def learned(c, logps_PLM, values_PL, seeds, *, steps=200, lr=50.0, base_PM=None,
            flipped=0.0, **more):
  """[seeds, steps + 1]: the mean of a value of reasonings under the policy.

  Args:
    c: config; its methods find the answer's log-probs, and as verdict if an answer
      drawn with them is the reference.
    logps_PLM: of the reference answer's tokens after a reasoning.
    base_PM: the same without reasoning.
    flipped: share of verdicts that are wrong.
    more: of `tabular.train`.
  """
  def judge(key, logits_PNV, batch):
    del logits_PNV
    logps_BM = logps_PLM[batch.prompt_B, batch.tokens_BT[:, 0] * 8 + batch.tokens_BT[:, 1]]
    draws_2B = jax.random.uniform(key, (2, len(logps_BM)))
    hit_B = (draws_2B[0] < jnp.exp(logps_BM.sum(axis=1))) ^ (draws_2B[1] < flipped)
    return dict(outcome_B=1.0 * hit_B, answer_logps_BM=logps_BM,
                answer_mask_BM=jnp.ones_like(logps_BM, bool),
                base_answer_logps_BM=None if base_PM is None else base_PM[batch.prompt_B])

  found, _ = tabular.train(
      c, WORLD, judge, lambda x: dict(value=WORLD.expected_P(x, values_PL).mean()),
      seeds=seeds, steps=steps, lr=lr, **more)
  return found["value"]
