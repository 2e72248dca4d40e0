"""Self-Guided Process Reward Optimization with Redefined Step-wise Advantage for Process
Reinforcement Learning (arXiv:2507.01551). SPRO: process rewards without a PRM, from the log-ratio
of the policy to its reference.

  rlx train papers/spro workdir=DIR
  rlx train papers/spro:smoke workdir=DIR

All values are our choice. Only descriptions of the paper's equations were found, neither its text
nor code: beta is not known, nor whether the completion itself is part of the mean.

The reward is 0 until the policy has moved from its reference. From then on it pays for what the
policy has become likelier to say, whatever the verdict is.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("3.4 times the training efficiency of GRPO, and 17.5% more accuracy",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0),
                   process=dict(name="implicit.own", coef=1.0, beta=0.05))
  c.advantages = dict(outcome=dict(name="group.grpo"), process=dict(name="process.masked_steps"),
                      whiten=False)
  return c
