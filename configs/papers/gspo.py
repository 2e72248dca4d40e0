"""Group Sequence Policy Optimization (arXiv:2507.18071): the ratio and its clip
are of the whole completion.

  rlx train papers/gspo workdir=DIR
  rlx train papers/gspo:smoke workdir=DIR

P the paper (section 5.1), O ours. At the learning rate here ratios move
further than there, so more is clipped.

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
  c.learner.minibatches = 4  # P; on-policy the clip does nothing
  return c
