"""An environment for likelihood rewards: reasonings make a reference answer more likely.

Only the reasoning is sampled and learned; there are 64 for each prompt. The probability of the
reference answer after each reasoning is a fixed table, drawn from the seed. It is not learned,
because no likelihood reward sends a gradient through it and a table would only memorise the
answers of its prompts.
"""
import jax
import jax.numpy as jnp

from experiments.claims.environments import tabular

TREE = tabular.Tree(prompts=16, vocab=8, length=2)
LEAVES = 64


def sound(key, share=0.1):
  """Returns is_sound_PL, in which each reasoning is sound with probability `share`."""
  return jax.random.uniform(key, (TREE.prompts, LEAVES)) < share


def arms(configs, drawn, measure, *, steps=200, **options):
  """Returns {name: arm} for {name: config}; "value" is the expected value of reasonings.

  Methods receive the log-probs of the reference answer. The verdict is 1 with the probability
  of that answer, else 0.

  Args:
    drawn: function from a key to (logps_PLM of the reference answer's tokens after each
      reasoning, values_PL of reasonings), optionally followed by base_PM, the log-probs
      without reasoning.
    measure, options: as `tabular.arm`; the name of the measure is "value".
  """
  def environment(key):
    logps_PLM, values_PL, *base = drawn(key)

    def verify(batch, key, **_):
      logps_BM = logps_PLM[batch.prompt_B, TREE.leaf_B(batch)]
      hit_B = jax.random.uniform(key, batch.prompt_B.shape) < jnp.exp(logps_BM.sum(axis=1))
      return dict(outcome_B=1.0 * hit_B, answer_logps_BM=logps_BM,
                  answer_mask_BM=jnp.ones_like(logps_BM, bool),
                  base_answer_logps_BM=base[0][batch.prompt_B] if base else None)

    return tabular.Environment(verify, TREE.means(value=values_PL))

  return tabular.arms(configs, TREE, environment, measure, steps=steps, **options)
