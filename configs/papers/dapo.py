"""DAPO: An Open-Source LLM Reinforcement Learning System at Scale (arXiv:2503.14476).
GRPO with a higher upper clip, without groups that give no signal, with a loss averaged
over tokens and with a soft penalty for overlong completions.

  rlx train papers/dapo workdir=DIR
  rlx train papers/dapo:smoke workdir=DIR

Letters beside the values: P stated in the paper (section 4.1), O our choice.

Differences from the paper: the lengths are ours (the longest answer takes 18 tokens and
receives no penalty), and the paper uses 16 minibatches, this config 4.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "the upper clip keeps entropy from collapsing",
    "AIME 2024 30 -> 50 with Qwen2.5-32B, in half of the steps",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # P: groups that are all right or all wrong are dropped
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)
  base.at_least(c, 24)  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=2.0),      # P: 1 or -1
      length=dict(name="length.overlong", coef=1.0,
                  max_length=c.rollouts.max_tokens,
                  buffer=-(-c.rollouts.max_tokens // 5)))  # P: 4096 of 20480
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)  # P
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.28)  # P
  c.learner.aggregation = "token-mean"  # P
  c.learner.minibatches = 4  # O: the method's rule has no effect on-policy
  return c
