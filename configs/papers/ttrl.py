"""TTRL: Test-Time Reinforcement Learning (arXiv:2504.16084): GRPO on agreement with
the majority answer, no label.

  python -m rlx.train --config=configs/papers/ttrl.py --workdir=DIR
  python -m rlx.train --config=configs/papers/ttrl.py:smoke --workdir=DIR

P (paper) the reward; O (ours) all else (the paper votes with 64 completions and
learns from 32). What counts as an answer is eval.answer. The paper trains on the
test questions themselves, here no held-out question is trained on.
"""
from configs import quickstart

PAPER = dict(
    title="TTRL: Test-Time Reinforcement Learning",
    arxiv="2504.16084",
    claims=(
        "Qwen2.5-Math-7B's pass@1 on AIME 2024 more than doubles without a label",
        "accuracy goes beyond that of the majority vote it learns from",
    ),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rewards = dict(outcome=dict(name="pseudo.majority", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.rollouts.keep = dict(name="keep.everything")  # asks no verdict
  return c
