"""Soft Adaptive Policy Optimization (arXiv:2511.20347).

A smooth gate on the probability ratio replaces the clip of PPO. It is steeper for tokens with a
negative advantage than for those with a positive one.

  rlx train papers/sapo workdir=DIR
  rlx train papers/sapo:smoke workdir=DIR

Letters beside the values: P stated in the paper, O our choice.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("more stable and at equal budget more accurate than GSPO and GRPO",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="policy.sapo", tau_pos=1.0, tau_neg=1.05)  # P
  c.learner.aggregation = "seq-mean-token-mean"  # P
  c.learner.minibatches = 4  # O: in a single on-policy update the gate would have no effect
  return c
