"""Optimizing Language Models for Inference Time Objectives using Reinforcement
Learning (arXiv:2503.19595). The objective is the expected reward of the best of k
completions. In its gradient only the best completion of a group has an advantage: its
reward less that of the second best.

  rlx train papers/pass_at_k workdir=DIR
  rlx train papers/pass_at_k:smoke workdir=DIR

Letters beside the values: P stated in the paper, C taken from verl (the estimator grpo_passk,
verl/trainer/ppo/core_algos.py), O our choice. With verdicts of 0 and 1 a group contributes a
gradient only if exactly one of its completions is right.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("pass@k improves over training on the mean, at some cost of pass@1",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages = dict(  # P; C divides by the group's std.
      outcome=dict(name="group.best_minus_second", use_std=False), whiten=False)
  # C volcengine/verl verl/trainer/config/actor/actor.yaml, which has no recipe for grpo_passk.
  c.learner.aggregation = "token-mean"
  return c
