"""A query is a table, a column and a condition, each one of six. One table, column and condition give
the right result: 1 in 216 queries of the initial policy. Two tables and two columns exist, so that a
wrong query may run; a wrong condition may have tokens of the right one. The weighted sum of the
verifier (WEIGHTS of rlx/verifiers/sql_query.py) is compared with the result alone.

Which choices are right, exist and resemble the right one is drawn for every prompt.
"""
import jax
import jax.numpy as jnp

from configs.papers import reasoning_sql
from experiments.claims.environments import tabular
from rlx.verifiers import sql_query

MEASURE = "mean accuracy over 100 steps with partial rewards minus that with the result alone"
MARGIN, RATE = 0.05, 5.0
FIRST = ("not recorded", "this is the first version, which is underpowered")
P, V = 8, 6
TREE = tabular.Tree(prompts=P, vocab=V, length=3)


def environment(is_partial):
  def draw(key):
    rank_P3V = jnp.argsort(jax.random.uniform(key, (P, 3, V)), axis=2)  # 0 is right.

    def verify(batch, **_):
      ranks_BT = rank_P3V[batch.prompt_B[:, None], jnp.arange(3)[None], batch.tokens_BT]
      right_BT, near_BT = ranks_BT == 0, ranks_BT < 2
      parts = dict(equal=right_BT.all(axis=1), runs=near_BT[:, :2].all(axis=1),
                   schema=right_BT[:, :2].mean(axis=1), format=jnp.ones(len(ranks_BT)),
                   ngrams=(right_BT.sum(axis=1) + (near_BT & ~right_BT).sum(axis=1) / 2) / 3)
      score_B = sum(w * parts[name] for name, w in sql_query.WEIGHTS.items()) / sum(
          sql_query.WEIGHTS.values())
      return dict(outcome_B=score_B if is_partial else 1.0 * parts["equal"])

    leaf_ranks_PLT = rank_P3V[:, jnp.arange(3)[None], jnp.asarray(TREE.leaves[0])]
    return tabular.Environment(verify, TREE.means(accuracy=jnp.all(leaf_ranks_PLT == 0, axis=2)))
  return draw


def arms():
  c = reasoning_sql.get_config()
  return {name: tabular.arm(c, TREE, environment(is_partial), tabular.mean("accuracy"), steps=100)
          for name, is_partial in (("partial", True), ("result alone", False))}
