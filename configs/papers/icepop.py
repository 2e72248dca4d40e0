"""Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale
Thinking Model (arXiv:2510.18855): IcePop, no gradient from tokens on which
sampler and trainer disagree.

  rlx train papers/icepop workdir=DIR
  rlx train papers/icepop:smoke workdir=DIR

P the paper, O ours.

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
  # O: in float32 sampler and trainer agree to a rounding and all weights are 1.
  c.model.dtype = "bfloat16"
  c.learner.minibatches = 4  # O: the clip and the weight are two corrections
  return c
