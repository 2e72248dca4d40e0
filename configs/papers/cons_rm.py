"""Confronting Reward Model Overoptimization with Constrained RLHF (arXiv:2310.04373). The
reward is a weighted sum of several scores and a KL penalty. The weight of a score is learned: it
rises while the score is below its threshold in the mean and falls beyond it, and what the scores
leave of the weight goes to the KL penalty.

  rlx train papers/cons_rm workdir=DIR
  rlx train papers/cons_rm:smoke workdir=DIR

Letters beside the values: C taken from the released code
(tedmoskovitz/ConstrainedRL4LMs); O our choice, which covers the thresholds, the rate of the
weights (the code has 0.01 to 0.1, for runs of more steps) and PPO's values.

Differences from the paper: one value model learns from the weighted sum; the paper has one for
each score and whitens their advantages. The scores of this config are the answer and the share
of right steps.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = ("with a threshold each proxy stops at its useful point; fixed weights overoptimize",)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # O. There is no filter by accuracy: RLHF has no verdict.
  # In place of reward models.
  c.verifier.scores = (base.part("verifier of answers"), base.part("graded verifier"))
  c.rewards = dict(outcome=dict(
      name="constrained.lagrangian", coef=1.0, thresholds=(0.9, 0.9), rate=1.0, momentum=0.1))
  # C tedmoskovitz/ConstrainedRL4LMs rl4lms/algorithms/constrained_ppo/constrained_ppo.py, not verl:
  # a mean over tokens.
  c.learner.aggregation = "token-mean"
  return c
