"""Rethinking Entropy Interventions in RLVR: An Entropy Change Perspective
(arXiv:2510.10150).

The loss of a token is weighted by how much its update would change the policy's entropy, to
first order: the larger the change, the smaller the weight.

  rlx train papers/steer workdir=DIR
  rlx train papers/steer:smoke workdir=DIR

Letters beside the values: C taken from the released code (zz-haooo/STEER), O our choice.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("entropy is flatter than with a higher clip or a bonus, at no less accuracy",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.28, dual_clip=10.0)  # C
  c.learner.token_weight = dict(name="token_weight.steer", low=0.8, shape="exponential")  # C
  c.learner.aggregation = "token-mean"  # O
  c.learner.minibatches = 4  # O: in a single on-policy update the clip would have no effect
  return c
