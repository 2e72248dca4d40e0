"""Reward-Robust RLHF in LLMs (arXiv:2409.15360): the nominal score mixed with the
worst of the ensemble.

  rlx train papers/brme workdir=DIR
  rlx train papers/brme:smoke workdir=DIR

P (paper) lambda within 0.4 to 0.6, unchecked; O (ours) all else. Five heads that
know their own spread are here two verifiers, the nominal one the share of right
steps.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("training stays stable for longer than with a single reward model",)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # O. No filter by accuracy: RLHF has no verdict.
  c.verifier.scores = ("chain.step_share", "chain.answer")  # stand in for the heads
  c.rewards = dict(                               # P lambda and 1 - lambda
      nominal=dict(name="shaping.plain", coef=0.5, kind="linear"),
      worst=dict(name="shaping.ensemble", coef=0.5, kind="min"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  return c
