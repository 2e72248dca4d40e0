"""Exploiting Tree Structure for Credit Assignment in RL Training of LLMs
(arXiv:2509.18314): GRPO, and to every token what it changed in the mean reward of the
completions that begin alike.

  rlx train papers/tempo workdir=DIR
  rlx train papers/tempo:smoke workdir=DIR

P (paper) the estimator; O (ours) all else, 16 completions among them: chains of digits
share prefixes, most texts share few.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("learns faster than GRPO, and to a higher accuracy, without a value model",)


def get_config(arg=""):
  c = quickstart.get_config(arg)
  if arg != "smoke": c.rollouts.per_prompt = 16                            # O
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.tempo"), whiten=False)      # P
  return c
