"""Completions of up to 6 tokens: end (0), work (1), fill (2), err (3). The form is right
if they end; the answer is right after two works or more and no err. As the paper finds
for mathematics, longer answers are right more often up to a length, where errors take
over. Nothing that is learned from tells work, fill and err apart. Form and length
against the form alone.
"""
import jax.numpy as jnp

from configs.papers import fmt_len
from experiments.worlds import tabular

CLAIM = 1
MEASURE = "accuracy learned from form and length less that from form alone"
LENGTH = 6


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=LENGTH, eos=True)

  def has_ended(tokens_BT, mask_BT):
    return jnp.any((tokens_BT == 0) & mask_BT, axis=1)

  def is_right(tokens_BT, mask_BT):
    works_B = jnp.sum((tokens_BT == 1) & mask_BT, axis=1)
    return (has_ended(tokens_BT, mask_BT) & (works_B >= 2)
            & ~jnp.any((tokens_BT == 3) & mask_BT, axis=1))

  right_L = is_right(*map(jnp.asarray, world.leaves))

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    rows = batch.tokens_BT, batch.mask_BT
    return dict(outcome_B=1.0 * is_right(*rows), scores_BE=1.0 * has_ended(*rows)[:, None])

  def accuracy(reward):
    c = tabular.changed(fmt_len.get_config(), rewards=dict(outcome=reward))
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_L).mean()),
        seeds=seeds, steps=100, lr=5.0)
    return found["accuracy"][:, -1]

  # The peak, 5 of 10 tokens, leaves room for four before the end.
  both = dict(name="length.surrogate", coef=1.0, max_length=10, peak=0.5)
  return accuracy(both) - accuracy(dict(name="shaping.plain", coef=1.0))
