"""Right completions are rare at every length, so a mean weighted by length differs from the plain
mean as a baseline. OPO is compared with z-scores, both on-policy. Their entropies are compared
at the same accuracy, because at equal steps an arm that takes smaller steps has more entropy.
"""
from configs.papers import opo
from experiments.claims.environments import sparse, tabular

MEASURE = ("entropy at an accuracy of 0.7, or the highest that both reach: OPO minus GRPO's "
           "advantages")
MARGIN, RATE = 0.1, 10.0
FIRST = ("not seen", "the step at which an accuracy is reached was not interpolated")
compare = sparse.matched


def arms():
  problem, c = sparse.endings(), opo.get_config()
  return problem.arms(
      {"OPO": c, "GRPO": tabular.changed(c, advantages__outcome=dict(name="group.grpo"))},
      sparse.with_entropy, steps=150)
