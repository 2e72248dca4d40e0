"""MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention
(arXiv:2506.13585). CISPO is REINFORCE with a clipped importance weight: the weight is
clipped, but every token keeps its gradient.

  rlx train papers/cispo workdir=DIR
  rlx train papers/cispo:smoke workdir=DIR

Letters beside the values: P stated in the paper and in verl, O our choice, which includes
the upper bound of the weight: the paper tunes it and does not state its value.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("reaches DAPO's accuracy in half of the steps",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # P: DAPO's filter
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)
  # P: no lower bound
  c.learner.loss = dict(name="policy.cispo", clip_low=None, clip_high=0.28)
  c.learner.aggregation = "token-mean"  # P
  c.learner.minibatches = 4  # O: the method's rule has no effect on-policy
  return c
