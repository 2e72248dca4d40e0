"""Proximal Policy Optimization Algorithms (arXiv:1707.06347): the clipped
surrogate, with a critic and generalized advantage estimation.

  rlx train papers/ppo workdir=DIR
  rlx train papers/ppo:smoke workdir=DIR

P the paper, O ours. A verdict on the last token; one epoch, there 3 to 10.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("of the surrogates compared the clipped one with 0.2 does best",)


def get_config(arg=""):
  # P: lambda; O: gamma (P: 0.99), whitening, and the value model's rate, which is the policy's.
  c = quickstart.ppo(arg)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)  # P
  c.learner.aggregation = "token-mean"  # O
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
