"""The world of PRIME's check: rare right answers, five steps of one token, of which any
wrong one spoils it. The other arm learns from outcomes alone. In both the advantages
are whitened, or step rewards would win by their size.

An accuracy counts as reached when it is first passed. PRIME is not an arm.
"""
import jax

from configs.papers import oprl
from experiments.worlds import steps
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("share of the steps of outcome rewards alone that step rewards save on the way "
           "to the accuracy both reach in 240")
REVISED = "step rewards took larger steps than outcomes; both arms are whitened now"


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

  dense = tabular.changed(oprl.get_config(), advantages__whiten=True)
  plain = tabular.changed(
      dense, rewards=dict(outcome=dense.rewards.outcome),
      advantages=dict(outcome=dense.advantages.outcome, whiten=True))
  return steps.saved(accuracy(dense), accuracy(plain))
