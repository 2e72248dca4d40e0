"""Completions of up to 6 tokens: end (0), work (1), fill (2), err (3). Right are those
that end after two works or more and no err, 1 in 21 at the start; most others are shorter. The bonus for being short, of the same size, as a factor of the verdict
against added to it.
"""
import jax.numpy as jnp

from configs.papers import crf
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy with the verdict times the bonus less that with the bonus added"
LENGTH, BONUS = 6, 0.5


def is_right(tokens_BT, mask_BT):
  ends_B = jnp.any((tokens_BT == 0) & mask_BT, axis=1)
  works_B = jnp.sum((tokens_BT == 1) & mask_BT, axis=1)
  return ends_B & (works_B >= 2) & ~jnp.any((tokens_BT == 3) & mask_BT, axis=1)


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=LENGTH, eos=True)
  right_L = is_right(*map(jnp.asarray, world.leaves))

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    return dict(outcome_B=1.0 * is_right(batch.tokens_BT, batch.mask_BT))

  def accuracy(rewards):
    c = tabular.changed(
        crf.get_config(), rewards=rewards, rollouts__keep=dict(name="keep.everything"),
        advantages=dict(total=dict(name="group.grpo"), whiten=False))
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_L).mean()),
        seeds=seeds, steps=200, lr=5.0)
    return found["accuracy"][:, -1]

  times = dict(outcome=dict(name="length.concise", coef=1.0, bonus=BONUS))
  # From 0 for a completion without length to -BONUS for the longest.
  added = dict(outcome=dict(name="outcome.verdict", coef=1.0),
               short=dict(name="length.overlong", coef=BONUS, max_length=LENGTH,
                          buffer=LENGTH))
  return accuracy(times) - accuracy(added)
