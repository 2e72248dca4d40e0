"""Two steps of reasoning of 5 choices each, then one of 5 answers: after the right
steps the policy knows it, after others it guesses, and one guess of five is right.
GRPO from verdicts on the answer alone; then 64 completions of it and of its start."""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import grpo
from experiments.worlds import tabular
from experiments.worlds import verdicts
from rlx.evals import pass_at_k

PAPER = dict(
    title="Reinforcement Learning with Verifiable Rewards Implicitly Incentivizes "
          "Correct Reasoning in Base LLMs",
    arxiv="2506.14245",
    claims=("what RLVR gains over the base at large k is hidden in pass@k and shows in "
            "CoT-pass@k",),
    confidence="medium")
CLAIM = 0
MEASURE = "gain over the start at k = 16: in CoT-pass@k less in pass@k"


def effects(seeds):
  world = tabular.Tree(prompts=32, vocab=5, length=3)
  right_PT = jax.random.randint(jax.random.key(0), (32, 3), 0, 5)
  # The node after the right steps: 1 + 5 nodes are above.
  knows_P = 6 + right_PT[:, 0] * 5 + right_PT[:, 1]
  start_PNV = world.start().at[jnp.arange(32), knows_P, right_PT[:, 2]].set(4.0)
  found_BT = lambda batch: batch.tokens_BT == right_PT[batch.prompt_B]
  right_PL = verdicts.of_leaves(world, lambda batch: found_BT(batch)[:, 2])
  _, trained_IPNV = tabular.train(
      grpo.get_config(), world, verdicts.judge(world, right_PL),
      verdicts.accuracy(world, right_PL), seeds=seeds, steps=100, lr=40.0,
      start=lambda key: start_PNV)

  def passes(logits_PNV, seed):
    batch = world.sample(jax.random.key(seed), logits_PNV, 64)
    found_PGT = np.asarray(found_BT(batch)).reshape(32, 64, 3)
    outcome_PG = 1.0 * found_PGT[:, :, 2]
    steps_PG = 1.0 * found_PGT[:, :, :2].all(axis=2)
    return (pass_at_k.cot_pass_at_k(outcome_PG, steps_PG, 16)
            - pass_at_k.pass_at_k(outcome_PG, 16))

  return [passes(trained_PNV, seed) - passes(start_PNV, seed)
          for trained_PNV, seed in zip(jnp.asarray(trained_IPNV), seeds)]
