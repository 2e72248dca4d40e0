"""Rethinking Entropy Interventions in RLVR: An Entropy Change Perspective
(arXiv:2510.10150): less weight on tokens whose update would change the
entropy most.

  rlx train papers/steer workdir=DIR
  rlx train papers/steer:smoke workdir=DIR

C the released code (zz-haooo/STEER), O ours.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("entropy is flatter than with a higher clip or a bonus, at no less accuracy",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.28, dual_clip=10.0)  # C
  c.learner.token_weight = dict(name="token_weight.steer", low=0.8, shape="exponential")  # C
  c.learner.aggregation = "token-mean"  # O
  c.learner.minibatches = 4  # O: on-policy the clip does nothing
  return c
