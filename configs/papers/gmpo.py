"""Geometric-Mean Policy Optimization (arXiv:2507.20673). The loss uses the geometric mean
of a completion's clipped token ratios in place of their arithmetic mean.

  rlx train papers/gmpo workdir=DIR
  rlx train papers/gmpo:smoke workdir=DIR

Letters beside the values: P stated in the paper, O our choice.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("ratios vary less than GRPO's, so the clip can be wider and entropy stays higher",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="sequence.gmpo", clip_low=0.4, clip_high=0.4)  # P
  c.learner.aggregation = "seq-mean-token-mean"  # P
  c.learner.minibatches = 4  # O: the method's rule has no effect on-policy
  return c
