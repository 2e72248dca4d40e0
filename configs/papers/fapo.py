"""FAPO: Flawed-Aware Policy Optimization for Efficient and Reliable Reasoning
(arXiv:2510.22543). A right answer that follows a wrong step gets less reward than one
whose steps are all right.

  rlx train papers/fapo workdir=DIR
  rlx train papers/fapo:smoke workdir=DIR

Letters beside the values: C taken from the released code (yyDing1/FAPO), O our choice.

Differences from the paper: the paper finds wrong steps with a generative reward model,
this config with an exact checker.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "flawed answers help early and hurt late; the penalty turns the sign of their advantage by "
    "itself",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # C: the advantage estimator. O: no filter.
  c.verifier.steps = base.part("checker of steps")  # O
  c.rewards.outcome = dict(name="steps.flaw_penalty", coef=1.0, lam=1.0)  # C
  c.learner.aggregation = "token-mean"  # C: a DAPO recipe
  return c
