"""One completion in ten is right; the verdicts of a prompt are flipped together.

A cost is little if the arm ends nearer to the one without flips than to the one whose
verdicts are a coin.
"""
import jax

from configs.papers import noisy_rew
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy learned under 40% of flips less the middle of those under none and 50%"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  right_PL = jax.random.uniform(jax.random.key(0), (8, 64)) < 0.1

  def judge(key, logits_PNV, batch):
    del logits_PNV
    return dict(outcome_B=1.0 * right_PL[batch.prompt_B, world.leaf_B(batch)],
                noise_B=jax.random.uniform(key, batch.prompt_B.shape))

  def accuracy(rate):
    c = tabular.changed(noisy_rew.get_config(), rewards__outcome__false_positive=rate,
                        rewards__outcome__false_negative=rate)
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_PL).mean()),
        seeds=seeds, steps=300, lr=10.0)
    return found["accuracy"][:, -1]

  return accuracy(0.4) - (accuracy(0.0) + accuracy(0.5)) / 2
