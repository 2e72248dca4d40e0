"""Simulates rare right completions (environments/sparse.py). The arms are
GRPO and the same method with PPO's estimator, which learns the values of all nodes during
training. GRPO reaches PPO's accuracy if it has at least 95% of it.
"""
from configs.papers import grpo
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy of GRPO after 30 steps minus 95% of that with a learned critic and GAE"
MARGIN, RATE = 0.05, 20.0
FIRST = ("confirmed", "both arms ended with an accuracy near 1")
compare = lambda groups, critic: groups - 0.95 * critic
CRITIC = dict(total=dict(name="temporal.gae", lam=0.95), whiten=True)


def arms():
  problem, c = sparse.rare(), grpo.get_config()
  return problem.arms({"GRPO": c, "critic": tabular.changed(c, advantages=CRITIC)},
                      "accuracy", steps=30)
