"""Pitfalls of Rule- and Model-based Verifiers -- A Case Study on Mathematical
Reasoning (arXiv:2505.22203): the hybrid verifier: a rule, then a second one on what
it rejects.

  rlx train papers/ver_pitfall workdir=DIR
  rlx train papers/ver_pitfall:smoke workdir=DIR

P (paper) the hybrid; O (ours) all else, unchecked. The same function as TinyV's.
The paper's second verifier is a model; here it is a looser rule, since the verdict
on chains demands their form, and like that model it can be hacked: any last number
will do.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "rule-based verifiers miss right answers in other forms; model-based ones are hacked in "
    "training",
)


def get_config(arg=""):
  # O: the estimator. No filter by accuracy: it would use the strict verdict.
  c = quickstart.grpo(arg)
  # Rejected here for its form, accepted there by its last number: "7;2;5;#5".
  c.verifier.scores = ("math_answer.final",)
  c.verifier.workers = 1
  c.rewards.outcome = dict(name="outcome.cascade", coef=1.0, mode="addon", weight=1.0)  # P
  return c
