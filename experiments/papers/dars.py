"""Eight prompts of 64 completions, four easy to solve and four with one right completion.

The first pass has 8 of each; the second shares its completions by the budget rule, or
the same number evenly. A group's rows beyond its budget have no verdict, so that
groups differ in size.
"""
import jax
import jax.numpy as jnp

from configs.papers import dars
from experiments.worlds import tabular
from rlx.rollouts import budget

CLAIM = 0
MEASURE = "pass@8 with the budget shared by difficulty less shared evenly, 200 steps"


def effects(seeds):
  c = tabular.changed(dars.get_config(), rollouts__keep=dict(name="keep.everything"))
  first, most = c.rollouts.budget.first, c.rollouts.per_prompt
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  chance_P1 = jnp.where(jnp.arange(8) < 4, 0.3, 0.02)[:, None]
  right_PL = (jax.random.uniform(jax.random.key(0), (8, 64)) < chance_P1).at[:, 0].set(True)

  def measure(logits_PNV):
    pass_P = world.expected_P(logits_PNV, right_PL)
    return dict(pass_at_8=(1 - (1 - pass_P) ** 8).mean())

  def pass_at_8(is_even):
    def judge(key, logits_PNV, batch):
      del key, logits_PNV
      leaf_B = world.leaf_B(batch)
      right_PG = right_PL[batch.prompt_B, leaf_B].reshape(8, most) * 1.0
      more_P = budget.dars(right_PG[:, :first].sum(axis=1), first, most)
      if is_even: more_P = jnp.broadcast_to(jnp.round(more_P.mean()), more_P.shape)
      is_drawn_PG = jnp.arange(most)[None, :] < first + more_P[:, None]
      return dict(outcome_B=jnp.where(is_drawn_PG, right_PG, jnp.nan).reshape(-1))

    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=200, lr=5.0,
                             start=lambda key: world.start(key, 1.0))
    return found["pass_at_8"][:, -1]

  return pass_at_8(False) - pass_at_8(True)
