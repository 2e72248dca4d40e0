"""Surrogate Signals from Format and Length: Reinforcement Learning for Solving
Mathematical Problems without Ground Truth Answers (arXiv:2505.19439): GRPO on the form
and the length of a completion, no label.

  rlx train papers/fmt_len workdir=DIR
  rlx train papers/fmt_len:smoke workdir=DIR

C (code) formula and peak (insightLLM/rl-without-gt, math_reward.py); O (ours) all else.
There two checks of format count, half each, thinking tags and an answer that can be
read, and L_max is 3072; here one, the chain's form, which has a length of its own.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "format and length match training on true answers, early in training",
    "with format alone training stalls, the length term prevents that",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.verifier.scores = ("chain.form",)
  # O twice the longest a prompt asks for: the peak is at 16 tokens, right ones have 12 to 18.
  c.rewards.outcome = dict(name="length.surrogate", coef=1.0, max_length=32, peak=0.5)  # C
  return c
