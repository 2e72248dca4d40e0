"""Every Step Evolves: Scaling Reinforcement Learning for Trillion-Scale
Thinking Model (arXiv:2510.18855).

Completions whose probability ratio between trainer and sampler exceeds a cap are masked out of
the loss; the others are weighted by that ratio. This is the masking rule of the paper, applied
to whole completions instead of tokens.

  rlx train papers/seq_mis workdir=DIR
  rlx train papers/seq_mis:smoke workdir=DIR

The form is sequence-level masked importance sampling (MIS), Liu et al. 2025 (When Speed Kills
Stability, a note without an arXiv number). Letters beside the values: C the cap in TRL's code,
O our choice.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("weights of completions are unbiased and outlast those of tokens, which collapse later",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.rollout_correction = dict(name="rollout_correction.seq_mis", cap=3.0)  # C
  # O: in float32 sampler and trainer agree up to rounding errors and all weights are 1.
  c.model.dtype = "bfloat16"
  c.learner.minibatches = 4  # O: so that the clip acts, too, which is a separate correction
  return c
