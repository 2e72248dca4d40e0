"""Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale
Thinking Model (arXiv:2510.18855): IcePop multiplies the loss of a token by the ratio of its
probabilities under trainer and sampler. A token whose ratio is out of bounds gives no gradient.

  rlx train papers/icepop workdir=DIR
  rlx train papers/icepop:smoke workdir=DIR

Letters beside the values: P stated in the paper, O our choice.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "masking keeps training of mixture-of-experts models from collapsing, truncation does not",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.rollout_correction = dict(name="rollout_correction.icepop", low=0.5, high=5.0)  # P
  # O: in float32 sampler and trainer agree up to rounding errors, so all weights would be 1.
  c.model.dtype = "bfloat16"
  c.learner.minibatches = 4  # O: the clip and this weight correct for different mismatches
  return c
