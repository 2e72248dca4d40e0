"""RLOO against a critic with GAE, with rare right completions and four samples for each prompt.

The baseline of RLOO is the mean of the other three completions; that of the other arm is a
value model, which is trained at the same time. The accuracy is measured. The paper's
comparisons with DPO and without the clip are left out.
"""
from configs.papers import rloo
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy of RLOO after 30 steps minus that of PPO's critic and GAE"
MARGIN, RATE = 0.05, 15.0
FIRST = ("not recorded", "both arms ended with an accuracy near 1")
CRITIC = dict(total=dict(name="temporal.gae", lam=0.95), whiten=False)


def arms():
  problem = sparse.rare()
  c = tabular.changed(rloo.get_config(), rollouts__per_prompt=4)
  return problem.arms({"RLOO": c, "critic": tabular.changed(c, advantages=CRITIC)},
                      "accuracy", steps=30)
