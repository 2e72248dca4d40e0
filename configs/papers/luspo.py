"""Length-Unbiased Sequence Policy Optimization: Revealing and Controlling
Response Length Variation in RLVR (arXiv:2602.05261): GSPO in which the loss of each
completion is multiplied by its length.

  rlx train papers/luspo workdir=DIR
  rlx train papers/luspo:smoke workdir=DIR

Letters beside the values: P stated in the paper (section 5.1), O our choice. Differences from
the paper: the task of this config determines the lengths of the completions.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("completions grow longer than GSPO's, and accuracy is higher than GRPO's and GSPO's",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="sequence.luspo", clip_low=2e-3, clip_high=2.5e-3)  # P
  c.learner.aggregation = "seq-mean-token-sum"  # P
  c.learner.minibatches = 4  # O: with one minibatch no ratio would be clipped
  return c
