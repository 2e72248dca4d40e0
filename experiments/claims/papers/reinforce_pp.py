"""REINFORCE++ against z-scores of each prompt's completions, where prompts can be overfitted.

The policy cannot distinguish its 8 prompts: they share the updates of one table. Which
completions are right differs between prompts, and only some of those that are right for these
8 are right for prompts in general, so that fitting the 8 is overfitting. The accuracy on all
prompts is measured.
"""
import jax
import jax.numpy as jnp
import optax

from configs.papers import reinforce_pp
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy on all prompts: statistics of the batch minus statistics of each prompt"
MARGIN, RATE = 0.05, 5.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=8, vocab=5, length=3)


def tied(lr):
  """Returns SGD that updates the tables of all prompts as one table."""
  as_one = lambda grads, _: jax.tree.map(lambda g: jnp.broadcast_to(g.sum(axis=0), g.shape), grads)
  return optax.chain(optax.stateless(as_one), optax.sgd(lr))


def environment(key):
  keys = jax.random.split(key, 3)
  share_L = jax.random.beta(keys[0], 0.3, 2.0, (125,))  # of the prompts for which it is right
  right_PL = jax.random.uniform(keys[1], (8, 125)) < share_L
  start_1NV = jax.random.normal(keys[2], (1, TREE.nodes, 5))
  return tabular.Environment(
      verdicts.verifier(TREE, right_PL), TREE.means(accuracy=share_L),
      start=jnp.broadcast_to(start_1NV, (8, TREE.nodes, 5)))


def arms():
  c = reinforce_pp.get_config()
  return tabular.arms(
      {"batch": c, "prompt": tabular.changed(c, advantages__total=dict(name="group.grpo"))},
      TREE, environment, "accuracy", steps=200, optimizer=tied)
