"""Simulates repairs of a program with two diagnostics, in four edits out of four. What an edit does
depends on the edits before: it removes a diagnostic, adds one or neither, and is safe or not.
The outcome is whether none is left at the end.

The rewards of edits by the diagnostics they remove and by their safety, with the outcome, are
compared with the outcome alone, by the accuracy over training.
"""
import functools

import jax
import jax.numpy as jnp

from configs.papers import lanser
from experiments.claims.environments import tabular, turns, verdicts

MEASURE = "accuracy over 100 steps with rewards of edits minus that with outcomes alone"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=4, vocab=4, length=4)
START = 2  # Diagnostics.


def environment(key, *, is_paid):
  keys = jax.random.split(key)
  shape = TREE.prompts, TREE.nodes, TREE.vocab
  effect_PNV = jax.random.choice(keys[0], jnp.array([-1, 0, 1]), shape)
  safe_PNV = jax.random.bernoulli(keys[1], 0.8, shape)
  options = lanser.get_config().environment

  def left(batch):
    """Returns left_BT, the diagnostics after each edit; there are never fewer than 0."""
    effects_BT = effect_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
    left_B, lefts = jnp.full(len(effects_BT), START), []
    for effect_B in effects_BT.T:
      left_B = jnp.maximum(left_B + effect_B, 0)
      lefts.append(left_B)
    return jnp.stack(lefts, axis=1)

  def verify(batch, **_):
    left_BT = left(batch)
    removed_BT = jnp.pad(left_BT, ((0, 0), (1, 0)), constant_values=START)[:, :-1] - left_BT
    safe_BT = safe_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
    outcome_B = 1.0 * (left_BT[:, -1] == 0)
    rewards_BT = is_paid * (options.decrease * removed_BT + options.sound * safe_BT)
    return dict(outcome_B=outcome_B, **turns.columns(batch),
                turn_rewards_BT=rewards_BT.at[:, -1].add(outcome_B))

  right_PL = verdicts.of_leaves(TREE, lambda batch: left(batch)[:, -1] == 0)
  return tabular.Environment(verify, TREE.means(accuracy=right_PL))


def arms():
  return {name: tabular.arm(lanser.get_config(), TREE,
                            functools.partial(environment, is_paid=is_paid),
                            tabular.mean("accuracy"), steps=100)
          for name, is_paid in (("edits", True), ("outcomes alone", False))}
