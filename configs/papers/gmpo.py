"""Geometric-Mean Policy Optimization (arXiv:2507.20673): the geometric mean of
the clipped token ratios, in place of their mean.

  rlx train papers/gmpo workdir=DIR
  rlx train papers/gmpo:smoke workdir=DIR

P the paper, O ours.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("ratios vary less than GRPO's, so the clip can be wider and entropy stays higher",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="sequence.gmpo", clip_low=0.4, clip_high=0.4)  # P
  c.learner.aggregation = "seq-mean-token-mean"  # P
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
