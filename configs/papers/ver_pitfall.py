"""Pitfalls of Rule- and Model-based Verifiers -- A Case Study on Mathematical
Reasoning (arXiv:2505.22203).

The hybrid verifier of the paper first applies a rule and then a second verifier to the answers
that the rule rejects.

  rlx train papers/ver_pitfall workdir=DIR
  rlx train papers/ver_pitfall:smoke workdir=DIR

Letters beside the values: P stated in the paper (the hybrid verifier), O our choice (all other
values, which are not verified against the paper's text). The reward is the same function as
that of papers/tinyv. Differences from the paper: its second verifier is a model; this config uses a
more lenient rule, since the verdict on chains demands a certain form of the answer. Like the
model, the rule can be exploited: it accepts any text whose last number is right.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "rule-based verifiers miss right answers in other forms; model-based ones are hacked in "
    "training",
)


def get_config(arg=""):
  # O: the estimator. No filter by accuracy, because it would use the strict verdict.
  c = quickstart.grpo(arg)
  # The verifier of chains rejects "7;2;5;#5" for its form; this one accepts its last number.
  c.verifier.scores = (base.part("strict and a lenient verifier"),)
  c.verifier.workers = max(c.verifier.workers, 1)
  c.rewards.outcome = dict(name="outcome.cascade", coef=1.0, mode="addon", weight=1.0)  # P
  return c
