"""A completion has three tokens and a rubric six items: each token meets one of two items of its
own, or none. The weights of the items are drawn for each prompt from those of the paper. The gold
score is the weighted share of the items met.

The judge of the rubric sees each item wrongly with a probability around 0.1. The judge that rates
the whole on a scale of ten sees the same with the same errors, but does not know the rubric: it
weighs the items by its own weights, drawn for each prompt. Measured is the gold score after 150
steps.
"""
import jax
import jax.numpy as jnp

from configs.papers import rar
from experiments.claims.environments import tabular, verdicts

MEASURE = "gold score after 150 steps with the items of the rubric minus that with a rating"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=3, length=3)
ITEMS, WEIGHTS = 6, (1.0, 0.7, 0.3, 0.9)


def environment(key):
  keys = jax.random.split(key, 4)
  weight_PI = jax.random.choice(keys[0], jnp.array(WEIGHTS), (TREE.prompts, ITEMS))
  own_PI = jax.random.exponential(keys[1], (TREE.prompts, ITEMS))
  error = tabular.around(keys[2], 0.1)
  def met(batch): return jnp.concatenate([batch.tokens_BT == 1, batch.tokens_BT == 2], axis=1)
  def share(met_BI, weight_BI): return jnp.sum(weight_BI * met_BI, axis=1) / weight_BI.sum(axis=1)

  def verify(batch, key, **_):
    met_BI = met(batch)
    seen_BI = 1.0 * (met_BI ^ jax.random.bernoulli(key, error, met_BI.shape))
    rating_B = jnp.round(1 + 9 * share(seen_BI, own_PI[batch.prompt_B])) / 10
    return dict(outcome_B=jnp.zeros(len(seen_BI)), items_BI=seen_BI, scores_BE=rating_B[:, None],
                item_weight_BI=weight_PI[batch.prompt_B],
                item_veto_BI=jnp.zeros(seen_BI.shape, bool))

  gold_PL = verdicts.of_leaves(TREE, lambda batch: share(met(batch), weight_PI[batch.prompt_B]))
  return tabular.Environment(verify, TREE.means(gold=gold_PL))


def arms():
  c = rar.get_config()
  rating = tabular.changed(c, rewards=dict(outcome=dict(name="outcome.score", coef=1.0)))
  return tabular.arms({"items": c, "rating": rating}, TREE, environment, "gold", steps=150)
