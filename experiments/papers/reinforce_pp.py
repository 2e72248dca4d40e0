"""A policy that cannot tell its 8 prompts apart: their tables learn as one. What is
right differs by prompt, and of what is right for them only a part is for prompts in
general, so that fitting the 8 is overfitting. REINFORCE++ against z-scores of the
prompt's completions."""
import jax
import jax.numpy as jnp
import optax

from configs.papers import reinforce_pp
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "accuracy on all prompts, statistics of the batch less those of a prompt"


def tied(lr):
  """SGD on one table for all prompts."""
  as_one = lambda grads, _: jax.tree.map(
      lambda g: jnp.broadcast_to(g.sum(axis=0), g.shape), grads)
  return optax.chain(optax.stateless(as_one), optax.sgd(lr))


def effects(seeds):
  tree = tabular.Tree(prompts=8, vocab=5, length=3)
  keys = jax.random.split(jax.random.key(0))
  share_L = jax.random.beta(keys[0], 0.3, 2.0, (125,))  # of prompts it is right for
  right_PL = jax.random.uniform(keys[1], (8, 125)) < share_L

  def accuracy(c):
    found, _ = tabular.train(
        c, tree, verdicts.judge(tree, right_PL), lambda x: dict(accuracy=tree.expected_P(x, share_L).mean()),
        seeds=seeds, steps=200, lr=5.0, optimizer=tied,
        start=lambda key: jnp.broadcast_to(
            jax.random.normal(key, (1, tree.nodes, 5)), (8, tree.nodes, 5)))
    return found["accuracy"][:, -1]

  c = reinforce_pp.get_config()
  return accuracy(c) - accuracy(tabular.changed(
      c, advantages__total=dict(name="group.grpo")))
