"""REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global
Advantage Normalization (arXiv:2501.03262). This is its variant with a baseline: the mean
reward of the group is subtracted before advantages are whitened over the batch.

  rlx train papers/reinforce_pp_baseline workdir=DIR
  rlx train papers/reinforce_pp_baseline:smoke workdir=DIR

Letters beside the values: P stated in the paper or taken from verl, O our choice.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("more stable than GRPO on long reasoning, where a group's std fails",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages.outcome = dict(name="batch.reinforce_pp_baseline")  # P
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.aggregation = "token-mean"  # O
  c.kl.coef, c.kl.kind, c.kl.place = 1e-4, "k2", "loss"  # P: k2; O: 1e-4
  return c
