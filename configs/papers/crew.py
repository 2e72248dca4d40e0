"""Confidence as a Reward: Transforming LLMs into Reward Models (arXiv:2510.13501): how
sure the policy is of its own answer, as a score.

  rlx train papers/crew workdir=DIR
  rlx train papers/crew:smoke workdir=DIR

P the paper: the score, the mean probability of the answer's tokens, and CRew-DPO, which
learns from the right and the wrong completion that it ranks apart furthest. O ours: one
pair a prompt, anew in every step, there some of a fixed set; the beta of DPO.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "confidence in the answer ranks right completions above wrong ones better than other "
    "training-free scores",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # The estimator is for the curves alone.
  c.likelihood.separator = "#"
  c.rewards.outcome = dict(
      name="likelihood.answer_confidence", coef=1.0, agg="mean_p")  # P, for the curves
  c.learner.loss = dict(name="sequence.crew_dpo", dpo_beta=0.1)  # P; O: beta
  # O: a group of one verdict has no pair.
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)
  return c
