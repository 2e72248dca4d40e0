"""An environment for rewards of likelihood: reasonings make a reference answer likelier.

Only the reasoning is sampled and learned, one of 64 for each prompt. What the policy
says of the answer after it is a fixed table, drawn from the seed: no reward of likelihood
sends a gradient through it, and a table would only memorise the answers of its prompts.
"""
import jax
import jax.numpy as jnp

from experiments.environments import tabular

TREE = tabular.Tree(prompts=16, vocab=8, length=2)
LEAVES = 64


def sound(key, share=0.1):
  """is_sound_PL: which reasonings are, at random."""
  return jax.random.uniform(key, (TREE.prompts, LEAVES)) < share


def arms(configs, drawn, measure, *, steps=200, flipped=0.0, **options):
  """{name: arm} of {name: config}: the mean of a value of reasonings under the policy.

  Methods get the answer's log-probs; the verdict is whether an answer drawn with them is the
  reference.

  Args:
    drawn: key -> (logps_PLM of the reference answer's tokens after a reasoning, values_PL
      of reasonings) or these and base_PM, the log-probs without reasoning.
    flipped: share of verdicts that are wrong.
    measure, options: of tabular.arm; the measure's name is "value".
  """
  def environment(key):
    logps_PLM, values_PL, *base = drawn(key)

    def verify(batch, key, **_):
      logps_BM = logps_PLM[batch.prompt_B, TREE.leaf_B(batch)]
      draws_2B = jax.random.uniform(key, (2, len(logps_BM)))
      hit_B = (draws_2B[0] < jnp.exp(logps_BM.sum(axis=1))) ^ (draws_2B[1] < flipped)
      return dict(outcome_B=1.0 * hit_B, answer_logps_BM=logps_BM,
                  answer_mask_BM=jnp.ones_like(logps_BM, bool),
                  base_answer_logps_BM=base[0][batch.prompt_B] if base else None)

    return tabular.Environment(
        verify, lambda x: dict(value=TREE.expected_P(x, values_PL).mean()))

  return tabular.arms(configs, TREE, environment, measure, steps=steps, **options)
