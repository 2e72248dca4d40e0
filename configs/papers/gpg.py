"""GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning
(arXiv:2504.02546). The policy gradient of centred rewards, scaled up to compensate for
groups without signal.

  rlx train papers/gpg workdir=DIR
  rlx train papers/gpg:smoke workdir=DIR

Letters beside the values: P stated in the paper, C the form of verl, O our choice.

Differences from the paper: the scale in the paper counts the groups with signal; verl and
this config count the rewards that are not 0.

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
