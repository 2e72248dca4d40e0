"""A completion has three independent qualities in [0, 1], and the gold score is their mean.
The rubric has six items: four read the first quality, one the second and one the third. Each item
is seen with noise of a standard deviation of 0.1.

A plain mean of the items counts the first quality four times. Weights from the covariance of the
items over the completions of a prompt, as of the config, should count it once.
"""
import jax
import jax.numpy as jnp

from configs.papers import rrd
from experiments.claims.environments import tabular

MEASURE = "gold score after 150 steps with weights by correlation minus that with a plain mean"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=8, vocab=8, length=2)
READS_I = jnp.array([0, 0, 0, 0, 1, 2])


def environment(key):
  quality_PL3 = jax.random.uniform(key, (TREE.prompts, TREE.vocab**TREE.length, 3))

  def verify(batch, key, **_):
    true_BI = quality_PL3[batch.prompt_B, TREE.leaf_B(batch)][:, READS_I]
    items_BI = jnp.clip(true_BI + 0.1 * jax.random.normal(key, true_BI.shape), 0, 1)
    return dict(outcome_B=jnp.zeros(len(items_BI)), items_BI=items_BI,
                item_weight_BI=jnp.ones_like(items_BI),
                item_veto_BI=jnp.zeros(items_BI.shape, bool))

  return tabular.Environment(verify, TREE.means(gold=quality_PL3.mean(axis=2)))


def arms():
  c = rrd.get_config()
  plain = tabular.changed(c, rewards=dict(outcome=dict(name="items.weighted", coef=1.0)))
  return tabular.arms({"by correlation": c, "plain mean": plain}, TREE, environment, "gold",
                      steps=150)
