"""Optimizing Language Models for Inference Time Objectives using Reinforcement
Learning (arXiv:2503.19595): the gradient of the best of k, so only a group's
best completion learns.

  rlx train papers/pass_at_k workdir=DIR
  rlx train papers/pass_at_k:smoke workdir=DIR

P the paper, C verl (grpo_passk), O ours. With verdicts of 0 and 1 a group
learns where just one is right.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("pass@k improves over training on the mean, at some cost of pass@1",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages = dict(  # P; C divides by the std
      outcome=dict(name="group.best_minus_second", use_std=False), whiten=False)
  return c
