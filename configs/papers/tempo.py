"""Exploiting Tree Structure for Credit Assignment in RL Training of LLMs
(arXiv:2509.18314).

The advantage of a token is that of GRPO plus the change that the token makes in the mean reward
of the group's completions with the same prefix.

  rlx train papers/tempo workdir=DIR
  rlx train papers/tempo:smoke workdir=DIR

Letters beside the values: P stated in the paper (the estimator), O our choice (all other
values). Groups have 16 completions, because the second part needs shared prefixes: chains of
digits share many, most other texts share few.

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
