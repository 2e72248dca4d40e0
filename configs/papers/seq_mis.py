"""Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale
Thinking Model (arXiv:2510.18855): its rule for whole completions, those far
from the policy are dropped.

  rlx train papers/seq_mis workdir=DIR
  rlx train papers/seq_mis:smoke workdir=DIR

The form is sequence-level MIS, Liu et al. 2025 (When Speed Kills Stability, a
note without an arXiv number): C its cap in TRL, O ours.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("weights of completions are unbiased and outlast those of tokens, which collapse later",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.rollout_correction = dict(name="rollout_correction.seq_mis", cap=3.0)  # C
  # O: in float32 sampler and trainer agree to a rounding and all weights are 1.
  c.model.dtype = "bfloat16"
  c.learner.minibatches = 4  # O: the clip and the weight are two corrections
  return c
