"""Beyond Majority Voting: Towards Fine-grained and More Reliable Reward Signal for Test-Time
Reinforcement Learning (arXiv:2512.15146).

GRPO is trained without labels: the reward is 1 for the answer with the largest sum of
confidences among the completions of a subgroup.

  rlx train papers/scope workdir=DIR
  rlx train papers/scope:smoke workdir=DIR

Letters beside the values: C taken from the released code (szu-tera/SCOPE, grouputils.py), O
our choice (two subgroups). eval.answer determines what counts as an answer.
rlx/rewards/pseudo.py says how the confidence and the subgroups differ from the paper's.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "a relative improvement over earlier test-time RL of 13.1% on AIME 2025 and 8.1% on AMC",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy, because the method needs no verdict.
  c.rewards.outcome = dict(name="pseudo.confident", coef=1.0, subgroups=2)   # C, O
  return c
