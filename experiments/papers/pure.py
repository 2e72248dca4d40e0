"""Steps that can be farmed: end (0), fill (1), work (2), err (3), at most four.

An answer is right if it ends, after work, without err. The judge of steps likes
filling almost as well as work. Summed, its scores pay for each step more; by the
worst step another one gains nothing. No verdicts are learned from, and both arms
take the mean of the other completions as their baseline: with the paper's own, of
which every token pays a share, the sum does not fail here.
"""
import jax.numpy as jnp

from configs.papers import pure
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy learned from the softmin of step scores less that from their sum"
SCORES = jnp.array([0.75, 0.7, 0.75, 0.3])  # of end after work, fill, work, err
LOST = 0.3                                  # of end without work


def is_right(tokens_BT, mask_BT):
  ends = jnp.any((tokens_BT == 0) & mask_BT, axis=1)
  return ends & jnp.any(tokens_BT == 2, axis=1) & ~jnp.any(tokens_BT == 3, axis=1)


def judge(key, logits_PNV, batch):
  del key, logits_PNV
  worked_BT = jnp.cumsum(batch.tokens_BT == 2, axis=1) > 0
  scores_BT = jnp.where((batch.tokens_BT == 0) & ~worked_BT, LOST, SCORES[batch.tokens_BT])
  return dict(outcome_B=1.0 * is_right(batch.tokens_BT, batch.mask_BT),
              step_scores_BT=scores_BT, step_ends_BT=batch.mask_BT)


def effects(seeds):
  world = tabular.Tree(prompts=4, vocab=4, length=4, eos=True)
  right_L = is_right(*map(jnp.asarray, world.leaves))

  def accuracy(kind):
    c = tabular.changed(pure.get_config(), rewards__outcome__coef=0.0, kl__coef=0.0,
                        rewards__process__kind=kind,
                        advantages={t: dict(name="group.rloo")
                                    for t in ("outcome", "process")} | dict(whiten=False))
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_L).mean()),
        seeds=seeds, steps=300, lr=10.0)
    return found["accuracy"][:, -1]

  return accuracy("softmin") - accuracy("raw")
