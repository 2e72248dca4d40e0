"""Right completions are rare at every length, so that a mean weighted by length is
another baseline. OPO against z-scores, both on-policy, compared where they have the
same accuracy: what takes smaller steps has more entropy at any time."""
from configs.papers import opo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "entropy when the accuracy reaches 0.7, OPO less GRPO's advantages"
REVISED = "the step that reaches an accuracy is interpolated (it was not seen)"


def effects(seeds):
  world, c = sparse.endings(), opo.get_config()
  entropy = lambda c: sparse.at_accuracy(
      world.learned(c, seeds, steps=250, lr=10.0), 0.7)
  return entropy(c) - entropy(tabular.changed(
      c, advantages__outcome=dict(name="group.grpo")))
