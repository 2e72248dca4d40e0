"""Reinforcement Learning with Verifiable Rewards Implicitly Incentivizes Correct
Reasoning in Base LLMs (arXiv:2506.14245).

Simulates two steps of reasoning with 5 choices each and then one of 5 answers. After the
right steps the policy knows the answer; after other steps it guesses, and one guess of
five is right. GRPO learns from verdicts on the answer alone. Then 64 completions are
sampled from the trained and from the initial policy, and the gain in CoT-pass@k is
compared with the gain in pass@k.

Confidence in the formula: medium.
"""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import grpo
from experiments.claims.environments import tabular, verdicts
from rlx.evals import pass_at_k

CLAIMS = ("the gain of RLVR over the base model at large k is visible in CoT-pass@k but not in "
          "pass@k",)
MEASURE = "gain over the initial policy in CoT-pass@16 minus its gain in pass@16"
MARGIN, RATE = 0.05, 40.0
FIRST = ("confirmed", "it was taken to follow from the formula until rates were tuned")
TREE = tabular.Tree(prompts=16, vocab=5, length=3)


def drawn(key):
  """Returns (right_PT, the logits_PNV of the initial policy)."""
  keys = jax.random.split(key)
  right_PT = jax.random.randint(keys[0], (16, 3), 0, 5)
  # The node after the right steps comes after the 1 + 5 nodes of the levels above it.
  knows_P = 6 + right_PT[:, 0] * 5 + right_PT[:, 1]
  return right_PT, TREE.start().at[jnp.arange(16), knows_P, right_PT[:, 2]].set(
      tabular.around(keys[1], jnp.full(16, 4.0)))


def environment(key):
  right_PT, start_PNV = drawn(key)
  right_PL = jnp.asarray(TREE.leaves[0])[None, :, 2] == right_PT[:, None, 2]
  return tabular.Environment(verdicts.verifier(TREE, right_PL), TREE.means(accuracy=right_PL),
                             start=start_PNV)


@jax.jit
@jax.vmap
def sampled(seed, trained_PNV):
  """Returns which tokens of 64 completions are right, [2, P, G, T]: initial policy, trained one."""
  key = tabular.environment_key(seed)
  right_PT, start_PNV = drawn(key)
  is_right = lambda logits_PNV: TREE.sample(key, logits_PNV, 64).tokens_BT.reshape(
      16, 64, 3) == right_PT[:, None]
  return jnp.stack([is_right(start_PNV), is_right(trained_PNV)])


def hidden(is_right_PGT):
  outcome_PG, steps_PG = 1.0 * is_right_PGT[..., 2], 1.0 * is_right_PGT[..., :2].all(axis=2)
  return pass_at_k.cot_pass_at_k(outcome_PG, steps_PG, 16) - pass_at_k.pass_at_k(outcome_PG, 16)


def arms():
  def gain(seeds, rates):
    metrics, trained_IPNV = tabular.train(grpo.get_config(), TREE, environment, seeds=seeds,
                                          lr=rates, steps=100)
    hidden_I2 = np.array([[hidden(x) for x in both] for both in np.asarray(
        sampled(seeds, trained_IPNV))])
    return hidden_I2[:, 1] - hidden_I2[:, 0], metrics["accuracy"][:, -1]
  return {"GRPO": gain}
