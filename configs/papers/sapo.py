"""Soft Adaptive Policy Optimization (arXiv:2511.20347): a smooth gate in place
of the clip, steeper for failures.

  rlx train papers/sapo workdir=DIR
  rlx train papers/sapo:smoke workdir=DIR

P the paper, O ours.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("more stable and at equal budget more accurate than GSPO and GRPO",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="policy.sapo", tau_pos=1.0, tau_neg=1.05)  # P
  c.learner.aggregation = "seq-mean-token-mean"  # P
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
