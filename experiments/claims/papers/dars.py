"""Simulates eight prompts of 64 completions each: four prompts are easy to solve, and
four have one or two right completions.

The first pass samples 8 completions of each prompt. The second pass distributes further
completions by the budget rule in one arm, and the same number evenly in the other; pass@8
is compared. Rows of a group beyond its budget have no verdict, so that groups differ in
size.
"""
import functools

import jax
import jax.numpy as jnp

from configs.papers import dars
from experiments.claims.environments import tabular
from rlx.rollouts import budget

MEASURE = "pass@8 after 200 steps with a budget by difficulty minus that with an even budget"
MARGIN, RATE = 0.05, 5.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key, is_even):
  c = dars.get_config()
  first, most = c.rollouts.budget.first, c.rollouts.per_prompt
  keys = jax.random.split(key, 4)
  chance_P1 = tabular.around(keys[0], [[0.3]] * 4 + [[0.02]] * 4)
  sure_P = jax.random.randint(keys[1], (8,), 0, 64)
  right_PL = ((jax.random.uniform(keys[2], (8, 64)) < chance_P1)
              | (jnp.arange(64)[None] == sure_P[:, None]))

  def verify(batch, **_):
    right_PG = right_PL[batch.prompt_B, TREE.leaf_B(batch)].reshape(8, most) * 1.0
    more_P = budget.dars(right_PG[:, :first].sum(axis=1), first, most)
    if is_even: more_P = jnp.broadcast_to(jnp.round(more_P.mean()), more_P.shape)
    is_drawn_PG = jnp.arange(most)[None, :] < first + more_P[:, None]
    return dict(outcome_B=jnp.where(is_drawn_PG, right_PG, jnp.nan).reshape(-1))

  def measure(logits_PNV):
    return dict(pass_at_8=(1 - (1 - TREE.expected_P(logits_PNV, right_PL)) ** 8).mean())

  return tabular.Environment(verify, measure, start=TREE.start(keys[3], 1.0))


def arms():
  return {name: tabular.arm(dars.get_config(), TREE,
                            functools.partial(environment, is_even=is_even), "pass_at_8", steps=200)
          for name, is_even in (("by difficulty", False), ("evenly", True))}
