"""GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning
(arXiv:2504.02546): the policy gradient of centred rewards, scaled up for
groups without signal.

  rlx train papers/gpg workdir=DIR
  rlx train papers/gpg:smoke workdir=DIR

P the paper, C verl's form (rewards that are not 0 are counted, there groups
with signal), O ours.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("does better than GRPO without clip, KL and reference",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages.outcome = dict(name="group.gpg")  # C
  c.learner.loss = dict(name="policy.reinforce")  # P
  c.learner.aggregation = "token-mean"  # O
  return c
