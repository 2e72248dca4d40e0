"""A completion has three tokens. Three kinds of tokens each serve an item of the rubric, which is
at the level of the config with one such token and 1 with more. A fourth kind serves none, but
impresses the judge: each adds to its score of every item, by an amount drawn around 0.4 for each
prompt. The last item of the rubric is that there are none of them, which the judge overlooks with
a probability around 0.1.

The gold score is the share of the three items that a token serves. Measured is it after 150 steps
with the config, compared with the plain weighted mean of the four items, and with the mean of
those that are no veto.
"""
import jax
import jax.numpy as jnp

from configs.papers import rubric_anchors
from experiments.claims.environments import tabular, verdicts

MEASURE = "gold score after 150 steps with veto, saturation and map minus that with a plain mean"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=5, length=3)


def environment(key):
  keys = jax.random.split(key)
  impress_P = tabular.around(keys[0], jnp.full(TREE.prompts, 0.4))
  overlooked = tabular.around(keys[1], 0.1)
  level = rubric_anchors.get_config().rewards.outcome.level
  def counts(batch):
    return jnp.sum(batch.tokens_BT[:, :, None] == jnp.arange(1, 5), axis=1)

  def verify(batch, key, **_):
    counts_B4 = counts(batch)
    served_B3 = jnp.where(counts_B4[:, :3] > 1, 1.0, level * counts_B4[:, :3])
    hacks_B1 = counts_B4[:, 3:]
    seen_B3 = jnp.minimum(served_B3 + impress_P[batch.prompt_B, None] * hacks_B1, 1)
    is_clean_B1 = (hacks_B1 == 0) | jax.random.bernoulli(key, overlooked, hacks_B1.shape)
    items_BI = jnp.concatenate([seen_B3, 1.0 * is_clean_B1], axis=1)
    return dict(outcome_B=jnp.zeros(len(items_BI)), items_BI=items_BI,
                item_weight_BI=jnp.ones_like(items_BI), scores_BE=seen_B3.mean(axis=1)[:, None],
                item_veto_BI=jnp.zeros(items_BI.shape, bool).at[:, 3].set(True))

  gold_PL = verdicts.of_leaves(TREE, lambda batch: (counts(batch)[:, :3] > 0).mean(axis=1))
  return tabular.Environment(verify, TREE.means(gold=gold_PL))


def plain(key):
  """The same without vetoes."""
  env = environment(key)
  def verify(batch, **given):
    columns = env.verify(batch, **given)
    return columns | dict(item_veto_BI=jnp.zeros_like(columns["item_veto_BI"]))
  return env._replace(verify=verify)


def arms():
  c = rubric_anchors.get_config()
  def rival(**reward): return tabular.changed(c, rewards=dict(outcome=dict(reward, coef=1.0)))
  options = dict(steps=150)
  return {"anchors": tabular.arm(c, TREE, environment, "gold", **options),
          "mean with the veto's item": tabular.arm(
              rival(name="items.weighted"), TREE, plain, "gold", **options),
          "mean without it": tabular.arm(
              rival(name="outcome.score"), TREE, plain, "gold", **options)}
