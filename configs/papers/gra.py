"""Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards
(arXiv:2508.10548). The rewards of steps count only if the outcome reward is high enough.

  rlx train papers/gra workdir=DIR
  rlx train papers/gra:smoke workdir=DIR

Letters beside the values: P stated in the paper, which defines that a reward counts if
the rewards of higher priority meet their thresholds; O our choice.

Differences from the paper: the paper rewards the turns of an agent and has more
priorities; this config rewards the steps of a chain and has two, the verdict and the
steps.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("added as they are, rewards of steps grow while the outcome falls; gated they do not",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="steps.mix", coef=1.0, kind="gate",  # P
                   theta=0.5))  # O
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)  # O
  return c
