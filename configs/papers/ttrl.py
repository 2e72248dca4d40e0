"""TTRL: Test-Time Reinforcement Learning (arXiv:2504.16084).

GRPO is trained without labels: the reward is 1 if the answer of a completion agrees with the
majority answer of its group.

  rlx train papers/ttrl workdir=DIR
  rlx train papers/ttrl:smoke workdir=DIR

The reward is stated in the paper; all other values are our choice. eval.answer determines what
counts as an answer. Differences from the paper: it votes with 64 completions and learns from 32
of them; this config uses all completions of a group for both. The paper trains on the test
questions themselves; this config trains on no held-out question.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "Qwen2.5-Math-7B's pass@1 on AIME 2024 more than doubles without a label",
    "accuracy goes beyond that of the majority vote it learns from",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy, because the method needs no verdict.
  c.rewards.outcome = dict(name="pseudo.majority", coef=1.0)
  return c
