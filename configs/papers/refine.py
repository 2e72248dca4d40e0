"""ReFIne: A Framework for Trustworthy Large Reasoning Models with Reliability, Faithfulness,
and Interpretability (arXiv:2510.09062).

The reward is the sum of a right answer, the structure of the completion and the Brier score of
the confidence that it states.

  rlx train papers/refine workdir=DIR model.path=MODEL
  rlx train papers/refine:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (the terms), O our choice (equal weights; the
blocks of the structure; the data). Differences from the paper: its term of references between
sections and its supervised start are not here.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "the term of confidence calibrates it at no cost of accuracy",
    "interpretability rises by 44%, faithfulness by 18.8% and reliability by 42.4%",
)


def get_config(arg=""):
  c = domains.grpo(
      arg, "facts", "Reply with <plan></plan>, <think></think>, <answer></answer> with the name "
      "alone, and <confidence></confidence> with how sure you are, from 0% to 100%.",
      tags=("plan", "think", "answer", "confidence"))                                         # O
  c.verifier.scores = ("confidence.stated", "confidence.form", "format.tags")                 # P
  c.rewards = dict(answer=dict(name="outcome.verdict", coef=1.0),                             # P, O
                   confidence=dict(name="outcome.calibrated", coef=1.0),                      # P, O
                   structure=dict(name="outcome.score", index=2, coef=1.0))                   # P, O
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)
  return c
