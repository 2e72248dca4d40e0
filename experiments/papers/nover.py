"""Reasonings of up to four tokens that 0 ends. The answer is likelier if the prompt's
own token is among them, a little with every token more, and by chance. What the model
says of the answer is a fixed table; length is what the reward of ranks has no word on.
"""
import jax
import jax.numpy as jnp

from configs.papers import nover
from experiments.worlds import tabular

CLAIM = 1
MEASURE = ("tokens of a completion learned without the efficiency term less those "
           "with it")


def effects(seeds):
  world = tabular.Tree(prompts=6, vocab=4, length=4, eos=True)
  own_P, length_L = jnp.arange(6) % 3 + 1, jnp.asarray(world.leaves[1].sum(axis=1))
  noise_PN = 0.2 * jax.random.normal(jax.random.key(0), (6, 256))

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    helps_B = jnp.any(batch.tokens_BT == own_P[batch.prompt_B][:, None], axis=1)
    tokens_B = jnp.sum(batch.tokens_BT > 0, axis=1)
    place_B = batch.tokens_BT @ 4 ** jnp.arange(4)
    logps_B = -2.5 + helps_B + 0.1 * tokens_B + noise_PN[batch.prompt_B, place_B]
    return dict(outcome_B=jnp.zeros(len(helps_B)), answer_logps_BM=logps_B[:, None],
                answer_mask_BM=jnp.ones((len(helps_B), 1), bool))

  def length(coef):
    c = tabular.changed(nover.get_config(), rewards__efficiency__coef=coef)
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(length=world.expected_P(x, length_L).mean()),
        seeds=seeds, steps=200, lr=20.0)
    return found["length"][:, -1]

  return length(0.0) - length(1.0)
