"""Right completions are rare at every length. Four completions per prompt with the optimal token
baseline are compared with 32 completions and the mean of the other completions as the baseline
(RLOO), after equally many steps.
"""
from configs.papers import otb
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy of the token baseline with 4 completions minus 95% of that of RLOO with 32"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
compare = lambda values, rloo: values - 0.95 * rloo


def arms():
  problem, c = sparse.endings(), otb.get_config()
  rloo = tabular.changed(c, rollouts__per_prompt=32, advantages__outcome=dict(name="group.rloo"))
  return problem.arms({"4, token baseline": c, "32, RLOO": rloo}, "accuracy", steps=100)
