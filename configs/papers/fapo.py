"""FAPO: Flawed-Aware Policy Optimization for Efficient and Reliable Reasoning
(arXiv:2510.22543): a right answer after a wrong step is worth less than a
sound one.

  rlx train papers/fapo workdir=DIR
  rlx train papers/fapo:smoke workdir=DIR

C the released code (yyDing1/FAPO), O ours. The exact checker finds the flaws,
there a generative reward model.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "flawed answers help early and hurt late; the penalty turns the sign of their advantage by "
    "itself",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # C: the estimator; O: no filter.
  c.verifier.steps = "chain.steps"  # O
  c.rewards.outcome = dict(name="steps.flaw_penalty", coef=1.0, lam=1.0)  # C
  c.learner.aggregation = "token-mean"  # C: a DAPO recipe
  return c
