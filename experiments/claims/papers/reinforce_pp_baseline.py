"""Statistics of the batch against z-scores of the group, with rare right completions and noise.

Right completions are very rare, and verdicts have a little noise. If all completions of a
group are wrong, its standard deviation is that of the noise, which z-scores amplify. The
accuracy is measured.
"""
import jax

from configs.papers import reinforce_pp_baseline
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy with the batch's statistics minus that with z-scores of the group"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not seen", None)
PROBLEM = sparse.rare(share=0.03)


def environment(key):
  exact, noise = PROBLEM.environment(key), tabular.around(jax.random.fold_in(key, 1), 0.05)
  def verify(batch, key, **_):
    right_B = exact.verify(batch, key=key)["outcome_B"]
    return dict(outcome_B=right_B + noise * jax.random.normal(key, right_B.shape))
  return exact._replace(verify=verify)


def arms():
  c = reinforce_pp_baseline.get_config()
  return tabular.arms(
      {"batch": c, "group": tabular.changed(c, advantages__outcome=dict(name="group.grpo"))},
      PROBLEM.tree, environment, sparse.late, steps=200)
