"""Pitfalls of Rule- and Model-based Verifiers -- A Case Study on Mathematical
Reasoning (arXiv:2505.22203): the hybrid verifier: a rule, then a second one on what
it rejects.

  python -m rlx.train --config=configs/papers/ver_pitfall.py --workdir=DIR
  python -m rlx.train --config=configs/papers/ver_pitfall.py:smoke --workdir=DIR

P (paper) the hybrid; O (ours) all else, unchecked. The same function as TinyV's.
The paper's second verifier is a model; here it is a looser rule, since the verdict
on chains demands their form, and like that model it can be hacked: any last number
will do.
"""
from configs import quickstart

PAPER = dict(
    title="Pitfalls of Rule- and Model-based Verifiers -- A Case Study on Mathematical "
          "Reasoning",
    arxiv="2505.22203",
    claims=(
        "rule-based verifiers miss right answers in other forms; model-based ones are "
        "hacked in training",
    ),
    confidence="medium")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  # Rejected here for its form, accepted there by its last number: "7;2;5;#5".
  c.verifier.scores = ("math_answer.final",)
  c.verifier.workers = 1
  c.rewards = dict(outcome=dict(
      name="outcome.cascade", coef=1.0, mode="addon", weight=1.0))  # P
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)  # O
  c.rollouts.keep = dict(name="keep.everything")  # the band would see the strict verdict
  return c
