"""Confidence as a Reward: Transforming LLMs into Reward Models (arXiv:2510.13501). The
score of a completion is the policy's confidence in its own answer, and CRew-DPO trains on
the pair of a right and a wrong completion whose scores differ most.

  rlx train papers/crew workdir=DIR
  rlx train papers/crew:smoke workdir=DIR

Letters beside the values: P stated in the paper (the score, which is the mean probability
of the answer's tokens, and CRew-DPO), O our choice (the beta of DPO).

Differences from the paper: the paper selects several pairs from a fixed set of
completions, this config one pair per prompt from the new completions of every step.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "confidence in the answer ranks right completions above wrong ones better than other "
    "training-free scores",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # The loss does not use the advantages; they are only logged.
  c.likelihood.separator, _ = base.part("mark of the answer")
  c.rewards.outcome = dict(
      name="likelihood.answer_confidence", coef=1.0, agg="mean_p")  # P; only logged
  c.learner.loss = dict(name="sequence.crew_dpo", dpo_beta=0.1)  # P; O: beta
  # O: a group that is all right or all wrong has no pair.
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)
  return c
