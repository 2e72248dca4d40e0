"""Right completions are rare at every length. Four completions a prompt against the
optimal token baseline, and 32 against the mean of the others, as many steps."""
from configs.papers import otb
from experiments.worlds import sparse
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy from 4 completions and the baseline of tokens less 95% of that from 32 and RLOO"


def effects(seeds):
  world, c = sparse.endings(), otb.get_config()
  accuracy = lambda c: world.learned(c, seeds, steps=100, lr=10.0)["accuracy"][:, -1]
  return accuracy(c) - 0.95 * accuracy(tabular.changed(
      c, rollouts__per_prompt=32, advantages__outcome=dict(name="group.rloo")))
