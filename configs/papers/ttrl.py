"""TTRL: Test-Time Reinforcement Learning (arXiv:2504.16084): GRPO on agreement with
the majority answer, no label.

  rlx train papers/ttrl workdir=DIR
  rlx train papers/ttrl:smoke workdir=DIR

P (paper) the reward; O (ours) all else (the paper votes with 64 completions and
learns from 32). What counts as an answer is eval.answer. The paper trains on the
test questions themselves, here no held-out question is trained on.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "Qwen2.5-Math-7B's pass@1 on AIME 2024 more than doubles without a label",
    "accuracy goes beyond that of the majority vote it learns from",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.rewards.outcome = dict(name="pseudo.majority", coef=1.0)
  return c
