"""Two lookups among 16, then an answer: the policy knows it with chance 0.01, 0.2 or
0.8 after none, one or both of the right ones, so that most groups are all wrong.

After each lookup the answer is asked for by looking nothing up (0) until it is due.
"""
import jax
import jax.numpy as jnp

from configs.papers import igpo
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("mean accuracy over 300 steps with each turn's gain less that from "
           "outcomes alone")


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=16, length=3)
  draws_P3 = jax.random.randint(jax.random.key(0), (8, 3), 1, 16)
  asked_P2, gold_P = draws_P3[:, :2], draws_P3[:, 2]
  leaves_LT = jnp.asarray(world.leaves[0])
  found_PN = jnp.sum(leaves_LT[None, ::16, :2] == asked_P2[:, None], axis=2)
  known_PN = jnp.array([0.01, 0.2, 0.8])[found_PN]
  start_PNV = world.start().at[jnp.arange(8)[:, None], 17 + jnp.arange(256)[None],
                               gold_P[:, None]].set(jnp.log(15 * known_PN / (1 - known_PN)))
  right_PL = leaves_LT[None, :, 2] == gold_P[:, None]

  def judge(key, logits_PNV, batch):
    del key
    def after(turns):
      tokens_BT = jnp.where(jnp.arange(3)[None] < turns, batch.tokens_BT, 0)
      asked = world.batch(batch.prompt_B, tokens_BT.at[:, 2].set(gold_P[batch.prompt_B]),
                          batch.mask_BT)
      return tabular.logps(logits_PNV, asked)[0][:, 2:]
    return dict(outcome_B=1.0 * (batch.tokens_BT[:, 2] == gold_P[batch.prompt_B]),
                step_answer_logps_BJM=jnp.stack(list(map(after, range(3))), axis=1),
                answer_mask_BM=jnp.ones((len(batch.tokens_BT), 1), bool),
                step_ends_BT=batch.mask_BT)

  def accuracy(coef):
    c = tabular.changed(igpo.get_config(), rewards__gain__coef=coef)
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_PL).mean()),
        seeds=seeds, steps=300, lr=30.0, start=lambda key: start_PNV)
    return found["accuracy"].mean(axis=1)

  return accuracy(1.0) - accuracy(0.0)
