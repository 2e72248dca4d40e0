"""MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention
(arXiv:2506.13585): CISPO, REINFORCE with a clipped weight, where every token
keeps its gradient.

  rlx train papers/cispo workdir=DIR
  rlx train papers/cispo:smoke workdir=DIR

P the paper and verl, O ours: the upper bound, which it tunes and does not state.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("reaches DAPO's accuracy in half of the steps",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # P: of DAPO
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)
  # P: no lower bound
  c.learner.loss = dict(name="policy.cispo", clip_low=None, clip_high=0.28)
  c.learner.aggregation = "token-mean"  # P
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
