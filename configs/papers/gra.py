"""Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards
(arXiv:2508.10548): steps are paid only where the outcome is good enough.

  rlx train papers/gra workdir=DIR
  rlx train papers/gra:smoke workdir=DIR

P the paper's definition: a reward counts if those of a higher priority meet their
thresholds. O ours. Steps of a chain in place of an agent's turns; two priorities, the
verdict and the steps, there more of them.

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
