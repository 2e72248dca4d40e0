"""Thinking longer helps, less and less: a completion of L tokens is right with
probability 1 - exp(-L / 2), and wrong if it reaches the limit of ten.

How long completions get from the plain verdict, PPO and all else being equal, less
how long from the cosine. The repetition penalty is left out.
"""
import jax
import jax.numpy as jnp

from configs.papers import cos_len
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "tokens a completion grows with the plain verdict less with the cosine reward"
LIMIT = 10


def judge(key, logits_PNV, batch):
  del logits_PNV
  lengths_B = jnp.sum(batch.mask_BT, axis=1)
  chance_B = jnp.where(lengths_B < LIMIT, 1 - jnp.exp(-lengths_B / 2), 0)
  return dict(outcome_B=1.0 * jax.random.bernoulli(key, chance_B))


def effects(seeds):
  world = tabular.Tree(prompts=4, vocab=2, length=LIMIT, eos=True)
  lengths_L = world.leaves[1].sum(axis=1)

  def growth(**changes):
    c = tabular.changed(cos_len.get_config(), **changes)
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(tokens=world.expected_P(x, lengths_L).mean()),
        seeds=seeds, steps=500, lr=10.0)
    return found["tokens"][:, -1] - found["tokens"][:, 0]

  return (growth(rewards__outcome=dict(name="outcome.verdict", coef=1.0))
          - growth(rewards__outcome__max_length=LIMIT))
