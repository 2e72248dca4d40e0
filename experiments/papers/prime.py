"""Rare right answers, one completion in 32: five steps, of which any wrong one spoils it.

Both arms take the band of accuracies, whitening and everything else of the published
run, and an accuracy counts as reached when it is first passed. The PRM starts as the
policy and learns online. Its beta is the quickstart's: completions are five tokens.
"""
import jax

from configs.papers import prime
from experiments.worlds import steps
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("share of the steps of outcome rewards alone that dense ones save on the way to "
           "the accuracy both reach in 240")


def effects(seeds):
  world = tabular.Tree(prompts=16, vocab=4, length=5)
  ok_PNV = steps.right_steps(jax.random.key(0), world, 2)
  right_PL = steps.right_leaves(world, ok_PNV)

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    return dict(outcome_B=steps.verdict_B(ok_PNV, batch))

  def accuracy(c):
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_PL).mean()),
        seeds=seeds, steps=240, lr=10.0, prm_lr=20.0)
    return found["accuracy"]

  dense = tabular.changed(prime.get_config(), rewards__process__beta=0.5,
                          prm__loss__beta=0.5)
  plain = tabular.changed(
      dense, rewards=dict(outcome=dense.rewards.outcome),
      advantages=dict(outcome=dense.advantages.outcome, whiten=True))
  return steps.saved(accuracy(dense), accuracy(plain))
