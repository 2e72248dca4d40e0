"""Group Sequence Policy Optimization (arXiv:2507.18071): the importance ratio of a whole
completion, normalised by its length, replaces the ratio of each token and is clipped.

  rlx train papers/gspo workdir=DIR
  rlx train papers/gspo:smoke workdir=DIR

Letters beside the values: P stated in the paper (section 5.1); the other values are our
choice. With the learning rate of this config the ratios move further from 1 than in the paper,
so more completions are clipped.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "clips far more tokens than GRPO and learns faster",
    "mixture-of-experts models train without replayed routing",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="sequence.gspo", clip_low=3e-4, clip_high=4e-4)  # P
  c.learner.aggregation = "seq-mean-token-mean"  # P
  c.learner.minibatches = 4  # P; with one minibatch no ratio would be clipped
  return c
