"""A completion has up to four tokens, and its gold score is the sum of the worths of its tokens,
which are drawn for each prompt. The judge adds a bonus for every token, so that long explanations
seem better than they are. The same judge either compares each completion with the first of its
group or gives its score, whose z-scores in the group are the advantages. Measured is the gold score
after 150 steps.
"""
import jax
import jax.numpy as jnp

from configs.papers import writing_zero
from experiments.claims.environments import tabular, verdicts

MEASURE = "gold score after 150 steps with comparisons minus that with the judge's scores"
MARGIN, RATE = 0.1, 5.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=4, eos=True)


def environment(key):
  keys = jax.random.split(key)
  worth_PV = jax.random.normal(keys[0], (TREE.prompts, TREE.vocab)).at[:, 0].set(0)
  bonus = tabular.around(keys[1], 0.5)
  def gold(batch):
    worth_BT = worth_PV[batch.prompt_B[:, None], batch.tokens_BT]
    return jnp.sum(worth_BT * batch.mask_BT, axis=1)

  def verify(batch, **_):
    seen_B = gold(batch) + bonus * batch.mask_BT.sum(axis=1)
    seen_PG = seen_B.reshape(TREE.prompts, -1)
    wins_PG = (1 + jnp.sign(seen_PG - seen_PG[:, :1])) / 2
    return dict(outcome_B=seen_B, scores_BE=wins_PG.reshape(-1, 1))

  return tabular.Environment(verify, TREE.means(gold=verdicts.of_leaves(TREE, gold)))


def arms():
  c = writing_zero.get_config()
  return tabular.arms({"comparisons": c, "scores": tabular.grpo(c)}, TREE, environment, "gold",
                      steps=150)
