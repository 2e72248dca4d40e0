"""Hybrid Reinforcement: When Reward Is Sparse, It's Better to Be Dense
(arXiv:2510.07242): the verdict, with a reward model ranking completions of equal
verdict.

  rlx train papers/hero workdir=DIR
  rlx train papers/hero:smoke workdir=DIR

P (paper) formulas, eq. 3 to 5; the numbers are of a re-implementation of its table 6
on verifiable prompts (docs of HERO in a fork of verl). Its reward model is here the
share of right steps.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "beats verifier-only and reward-model-only training, most on answers that are hard to verify",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: scores differ where all answers are right.
  c.verifier.scores = ("chain.step_share",)       # stands in for a reward model
  c.rewards.outcome = dict(name="shaping.stratified", coef=1.0, 
                             wrong_range=0.05, right_range=0.05)
  c.advantages.outcome = dict(name="group.variance_weighted", low=0.4, high=3.0, k=6.0)
  return c
