"""Thinking longer helps, less and less: a completion of L tokens is right with probability
1 - exp(-L / s), s about 2, and wrong if it reaches the limit of ten.

How long completions get from the plain verdict, PPO and all else being equal and rates
tuned for the accuracy, less how long from the cosine. The repetition penalty is left out.
"""
import jax
import jax.numpy as jnp

from configs.papers import cos_len
from experiments.environments import tabular

CLAIM = 0
MEASURE = "tokens a completion grows with the plain verdict less with the cosine reward"
MARGIN, RATE = 0.2, 10.0
FIRST = ("confirmed", None)
LIMIT = 10
DIFFERS = {"rewards.outcome.max_length": "the limit of completions here, as there"}
WORLD = tabular.Tree(prompts=4, vocab=2, length=LIMIT, eos=True)


def environment(key):
  scale = tabular.around(key, 2.0)
  chance = lambda lengths: jnp.where(lengths < LIMIT, 1 - jnp.exp(-lengths / scale), 0)
  lengths_1L = jnp.asarray(WORLD.leaves[1].sum(axis=1)[None])

  def judge(key, logits_PNV, batch):
    del logits_PNV
    chance_B = chance(jnp.sum(batch.mask_BT, axis=1))
    return dict(outcome_B=1.0 * jax.random.bernoulli(key, chance_B))

  return tabular.Environment(judge, lambda x: dict(
      tokens=WORLD.expected_P(x, lengths_1L).mean(),
      accuracy=WORLD.expected_P(x, chance(lengths_1L)).mean()))


def arms():
  def shrinkage(**changes):
    c = tabular.changed(cos_len.get_config(), **changes)
    def arm(seeds, rates):
      found, _ = tabular.train(c, WORLD, environment, seeds=seeds, lr=rates, steps=300)
      return found["tokens"][:, 0] - found["tokens"][:, -1], found["accuracy"][:, -1]
    return arm
  return {"cosine": shrinkage(rewards__outcome__max_length=LIMIT),
          "plain verdict": shrinkage(rewards__outcome=dict(name="outcome.verdict", coef=1.0))}
