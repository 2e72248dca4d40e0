"""Confronting Reward Model Overoptimization with Constrained RLHF (arXiv:2310.04373). The
reward is a sum of several scores, and each score loses its weight when it reaches its
threshold.

  rlx train papers/cons_rm workdir=DIR
  rlx train papers/cons_rm:smoke workdir=DIR

Letters beside the values: C taken from the released code
(tedmoskovitz/ConstrainedRL4LMs), which is the form of the reward; O our choice, which
covers the thresholds, k, the KL penalty and PPO's values.

Differences from the paper: the paper updates its multipliers by descent with rate 0.01
and momentum 0.1 and leaves the rest of the weight to the KL term; the multipliers of this
config have no memory and leave no weight to the KL term. The scores of this config are
the answer and the share of right steps.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("with a threshold each proxy stops at its useful point; fixed weights overoptimize",)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # O. There is no filter by accuracy: RLHF has no verdict.
  # In place of reward models.
  c.verifier.scores = (base.part("verifier of answers"), base.part("graded verifier"))
  c.rewards = dict(outcome=dict(
      name="shaping.ensemble", coef=1.0, kind="lagrange", k=10.0, thresholds=(0.9, 0.9)))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  # C tedmoskovitz/ConstrainedRL4LMs rl4lms/algorithms/constrained_ppo/constrained_ppo.py, not verl:
  # a mean over tokens.
  c.learner.aggregation = "token-mean"
  return c
