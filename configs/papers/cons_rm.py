"""Confronting Reward Model Overoptimization with Constrained RLHF (arXiv:2310.04373):
each of several rewards loses its weight where it reaches its threshold.

  rlx train papers/cons_rm workdir=DIR
  rlx train papers/cons_rm:smoke workdir=DIR

C (code) tedmoskovitz/ConstrainedRL4LMs for the form; O (ours) thresholds, k, KL and
PPO's numbers. The multipliers have no memory here (the paper's descend with rate
0.01, momentum 0.1) and leave no weight to the KL term; the scores are the answer
and the share of right steps.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("with a threshold each proxy stops at its useful point; fixed weights overoptimize",)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # O. No filter by accuracy: RLHF has no verdict.
  c.verifier.scores = ("chain.answer", "chain.step_share")  # for reward models
  c.rewards = dict(outcome=dict(
      name="shaping.ensemble", coef=1.0, kind="lagrange", k=10.0, thresholds=(0.9, 0.9)))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  return c
