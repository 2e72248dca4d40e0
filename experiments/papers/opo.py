"""Right completions are rare at every length, so that a mean weighted by length is
another baseline. OPO against z-scores, both on-policy, compared where they have the
same accuracy: what takes smaller steps has more entropy at any time."""
from configs.papers import opo
from experiments.environments import sparse
from experiments.environments import tabular

CLAIM = 0
MEASURE = "entropy at an accuracy of 0.7, or the most that both reach, OPO less GRPO's advantages"
MARGIN, RATE = 0.1, 10.0
FIRST = ("not seen", "the step that reaches an accuracy is interpolated")
compare = sparse.matched


def arms():
  problem, c = sparse.endings(), opo.get_config()
  return problem.arms({
      "OPO": c,
      "GRPO": tabular.changed(c, advantages__outcome=dict(name="group.grpo")),
  }, sparse.with_entropy, steps=150)
