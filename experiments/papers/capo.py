"""Four steps, each right with two of four tokens; the answer is right if all are. A
judge of steps is wrong about one in ten of them, anew each time.

Accuracy over training with CAPO's penalties of steps beside the outcome, less with the
outcome alone.
"""
import jax
import jax.numpy as jnp

from configs.papers import capo
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy over 150 steps with penalties of wrong steps less with outcomes alone"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=4)

  def given(key):
    """Of every prompt and node the two tokens that are right."""
    order_PNV = jnp.argsort(jax.random.uniform(key, (8, world.nodes, 4)), axis=2)
    return order_PNV < 2

  def steps(good_PNV, batch):
    return good_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]

  def judge(key, logits_PNV, batch, good_PNV):
    del logits_PNV
    good_BT = steps(good_PNV, batch)
    mistaken_BT = jax.random.bernoulli(key, 0.1, good_BT.shape)
    return dict(outcome_B=1.0 * jnp.all(good_BT, axis=1),
                step_scores_BT=1.0 * (good_BT ^ mistaken_BT), step_ends_BT=batch.mask_BT)

  def measure(logits_PNV, good_PNV):
    tokens_LT, mask_LT = map(jnp.asarray, world.leaves)
    right = jax.vmap(lambda p: jnp.all(steps(good_PNV, world.batch(
        jnp.full(256, p), tokens_LT, mask_LT)), axis=1))
    return dict(accuracy=world.expected_P(logits_PNV, right(jnp.arange(8))).mean())

  def accuracy(**changes):
    c = tabular.changed(capo.get_config(), **changes)
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=150, lr=10.0,
                             given=given)
    return found["accuracy"].mean(axis=1)

  return accuracy() - accuracy(
      rewards=dict(outcome=dict(name="outcome.verdict", coef=2.0)),
      advantages=dict(outcome=dict(name="group.rloo"), whiten=True))
