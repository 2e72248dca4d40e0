"""Surrogate Signals from Format and Length: Reinforcement Learning for Solving
Mathematical Problems without Ground Truth Answers (arXiv:2505.19439). GRPO without
labels, on a reward that depends only on the format and the length of a completion.

  rlx train papers/fmt_len workdir=DIR
  rlx train papers/fmt_len:smoke workdir=DIR

Letters beside the values: C taken from the released code (insightLLM/rl-without-gt,
math_reward.py), which is the formula and the peak; O our choice, which is everything
else.

Differences from the paper: the paper averages two checks of the format, thinking tags and
an answer that can be read, and has L_max = 3072. This config has one check, the form of
the chain, which itself requires a certain length.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "format and length match training on true answers, early in training",
    "with format alone training stalls, the length term prevents that",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # There is no filter by accuracy: the method needs no verdict.
  c.verifier.scores = (base.part("checker of the form"),)
  # O: on the toy the reward peaks at 16 tokens; right completions have 12 to 18.
  c.rewards.outcome = dict(name="length.surrogate", coef=1.0, peak=0.5,  # C
                           max_length=max(32, c.rollouts.max_tokens))
  # C insightLLM/rl-without-gt rl/verl/verl/verl/trainer/ppo/core_algos.py, which has no other mode.
  c.learner.aggregation = "token-mean"
  return c
