"""A completion has a quality, uniform in [0, 1], which is the gold score. An item of a rubric is
met from some quality on. The rubric has four items, from 0.1, 0.3, 0.5 and 0.7 on. It is refined
by two items that tell great completions apart, from 0.85 and 0.95 on, or by two that tell others
apart, from 0.2 and 0.4 on. The judge is wrong about one item in twenty, always in the same way,
so that the policy can exploit it.

The gold score after GRPO on the weighted share of the six items, as of the config, is measured.
"""
import functools

import jax
import jax.numpy as jnp

from configs.papers import rubric_tail
from experiments.claims.environments import tabular

MEASURE = "gold score after 150 steps with items for great completions minus that with others"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=8, length=2)
FROM = (0.1, 0.3, 0.5, 0.7)


def environment(key, *, more):
  keys = jax.random.split(key, 3)
  quality_PL = jax.random.uniform(keys[0], (TREE.prompts, TREE.vocab**TREE.length))
  met_PLI = quality_PL[:, :, None] > jnp.array([*FROM, *more])
  mistaken_PLI = jax.random.bernoulli(keys[1], tabular.around(keys[2], 0.05), met_PLI.shape)
  read = TREE.verifier(outcome_B=jnp.zeros(quality_PL.shape), items_BI=met_PLI ^ mistaken_PLI)

  def verify(batch, **_):
    columns = read(batch)
    return columns | dict(item_weight_BI=jnp.ones_like(columns["items_BI"]),
                          item_veto_BI=jnp.zeros(columns["items_BI"].shape, bool))

  return tabular.Environment(verify, TREE.means(gold=quality_PL))


def arms():
  c = rubric_tail.get_config()
  return {name: tabular.arm(c, TREE, functools.partial(environment, more=more), "gold", steps=150)
          for name, more in (("of great ones", (0.85, 0.95)), ("of others", (0.2, 0.4)))}
