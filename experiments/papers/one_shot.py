"""One prompt is trained on; what is learned of it is added to the fixed logits of 64
others, which have the same right completions and lean elsewhere by noise: what a model
shares between prompts, at its simplest. GRPO with the paper's coefficients; from the
step on in which the training prompt's accuracy is above 99% to 500 steps later.
"""
import jax
import numpy as np

from configs.papers import one_shot
from experiments.worlds import tabular

CLAIM = 1
MEASURE = "accuracy on other prompts at the end less when training accuracy reaches 99%"
OTHERS, AFTER = 64, 500


def effects(seeds):
  world = tabular.Tree(prompts=1, vocab=4, length=3)
  right_1L = jax.random.uniform(jax.random.key(0), (1, 64)) < 0.2
  others = tabular.Tree(prompts=OTHERS, vocab=4, length=3)
  lean_PNV = others.start(jax.random.key(1), 2.0)

  def judge(key, logits_1NV, batch):
    del key, logits_1NV
    leaf_B = world.leaf_B(batch)
    return dict(outcome_B=1.0 * right_1L[0, leaf_B])

  def measure(logits_1NV):
    return dict(train=world.expected_P(logits_1NV, right_1L).mean(),
                others=others.expected_P(lean_PNV + logits_1NV, right_1L).mean())

  found, _ = tabular.train(one_shot.get_config(), world, judge, measure, seeds=seeds,
                           steps=200 + AFTER, lr=2.0)
  is_full = found["train"] > 0.99
  first = np.argmax(is_full, axis=1)
  if not is_full.any(axis=1).all() or first.max() > 200:
    raise ValueError(f"the training prompt is not solved within 200 steps: {first}")
  rows = np.arange(len(seeds))
  return found["others"][rows, first + AFTER] - found["others"][rows, first]
