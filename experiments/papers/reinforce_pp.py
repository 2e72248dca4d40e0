"""A policy that cannot tell its 8 prompts apart: their tables learn as one. What is
right differs by prompt, and of what is right for them only a part is for prompts in
general, so that fitting the 8 is overfitting. REINFORCE++ against z-scores of the
prompt's completions."""
import jax
import jax.numpy as jnp
import optax

from configs.papers import reinforce_pp
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "accuracy on all prompts, statistics of the batch less those of a prompt"
MARGIN, RATE = 0.05, 5.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=8, vocab=5, length=3)


def tied(lr):
  """SGD on one table for all prompts."""
  as_one = lambda grads, _: jax.tree.map(
      lambda g: jnp.broadcast_to(g.sum(axis=0), g.shape), grads)
  return optax.chain(optax.stateless(as_one), optax.sgd(lr))


def environment(key):
  keys = jax.random.split(key, 3)
  share_L = jax.random.beta(keys[0], 0.3, 2.0, (125,))  # of prompts it is right for
  right_PL = jax.random.uniform(keys[1], (8, 125)) < share_L
  start_1NV = jax.random.normal(keys[2], (1, TREE.nodes, 5))
  return tabular.Environment(
      verdicts.verifier(TREE, right_PL),
      lambda x: dict(accuracy=TREE.expected_P(x, share_L).mean()),
      start=jnp.broadcast_to(start_1NV, (8, TREE.nodes, 5)))


def arms():
  c = reinforce_pp.get_config()
  return tabular.arms({
      "batch": c,
      "prompt": tabular.changed(c, advantages__total=dict(name="group.grpo")),
  }, TREE, environment, "accuracy", steps=200, optimizer=tied)
