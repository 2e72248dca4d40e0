"""Proximal Policy Optimization Algorithms (arXiv:1707.06347). PPO maximises a surrogate
objective in which the probability ratio to the old policy is clipped. Advantages are
estimated from a critic with generalized advantage estimation.

  rlx train papers/ppo workdir=DIR
  rlx train papers/ppo:smoke workdir=DIR

Letters beside the values: P stated in the paper, O our choice.

Differences from the paper: The only reward is the verdict, given at the last token. The
paper trains 3 to 10 epochs on a batch; this config trains one.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("of the surrogates compared the clipped one with 0.2 does best",)


def get_config(arg=""):
  # P: lambda; O: gamma (P has 0.99), whitening, and the value model's learning rate, which is
  # the policy's.
  c = quickstart.ppo(arg)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)  # P
  c.learner.aggregation = "token-mean"  # O
  c.learner.minibatches = 4  # O: clipping has no effect on-policy
  return c
