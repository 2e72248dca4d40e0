"""Simulates longer thinking with diminishing returns: a completion of L tokens is right
with probability 1 - exp(-L / s), s about 2, and wrong if it reaches the limit of ten.

The arms are PPO with the plain verdict and PPO with the cosine reward, equal otherwise,
with learning rates tuned for the accuracy. The check measures by how many more tokens
completions grow with the plain verdict. The paper's repetition penalty is left out.
"""
import jax
import jax.numpy as jnp

from configs.papers import cos_len
from experiments.claims.environments import tabular

MEASURE = "growth of completions in tokens with the plain verdict minus that with the cosine reward"
MARGIN, RATE = 0.2, 10.0
FIRST = ("confirmed", None)
LIMIT = 10
DIFFERS = {"rewards.outcome.max_length": "the limit of completions, as in the paper; it is 10 here"}
TREE = tabular.Tree(prompts=4, vocab=2, length=LIMIT, eos=True)


def environment(key):
  scale = tabular.around(key, 2.0)
  chance = lambda lengths: jnp.where(lengths < LIMIT, 1 - jnp.exp(-lengths / scale), 0)
  lengths_1L = jnp.asarray(TREE.leaves[1].sum(axis=1)[None])

  def verify(batch, key, **_):
    chance_B = chance(jnp.sum(batch.mask_BT, axis=1))
    return dict(outcome_B=1.0 * jax.random.bernoulli(key, chance_B))

  return tabular.Environment(
      verify, TREE.means(tokens=lengths_1L, accuracy=chance(lengths_1L)))


def arms():
  c = cos_len.get_config()
  cosine = tabular.changed(c, rewards__outcome__max_length=LIMIT)
  plain = tabular.changed(c, rewards__outcome=dict(name="outcome.verdict", coef=1.0))
  def shrinkage(curves):
    return curves["tokens"][:, 0] - curves["tokens"][:, -1], curves["accuracy"][:, -1]
  return tabular.arms({"cosine": cosine, "plain verdict": plain},
                      TREE, environment, shrinkage, steps=300)
