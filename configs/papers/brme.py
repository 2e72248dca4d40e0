"""Reward-Robust RLHF in LLMs (arXiv:2409.15360). The reward is a weighted sum, with
weights lambda and 1 - lambda, of a nominal score and of the worst score of an ensemble.

  rlx train papers/brme workdir=DIR
  rlx train papers/brme:smoke workdir=DIR

Letters beside the values: P stated in the paper (lambda between 0.4 and 0.6, not verified
against the paper's text), O our choice (all others).

Differences from the paper: the paper's ensemble has five heads that predict their own
spread; this config uses two verifiers, and the nominal score is the share of right steps.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("training stays stable for longer than with a single reward model",)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # O. There is no filter by accuracy: RLHF has no verdict.
  # In place of the heads.
  c.verifier.scores = (base.part("graded verifier"), base.part("verifier of answers"))
  c.rewards = dict(                               # P lambda and 1 - lambda
      nominal=dict(name="shaping.plain", coef=0.5, kind="linear"),
      worst=dict(name="shaping.ensemble", coef=0.5, kind="min"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  return c
