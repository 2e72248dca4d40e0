"""Scaling Reinforcement Learning for Content Moderation with Large Language Models
(arXiv:2512.20061).

The reward of a decision is a weighted mean of its label, its form, its length and what it
quotes.

  rlx train papers/moderation_rl workdir=DIR model.path=MODEL
  rlx train papers/moderation_rl:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (the terms of label, form and length), O our
choice (the weights; the words that decide, in place of a rubric that a model judges; the
messages, which are made).

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "rewards for form and length keep completions from becoming shorter",
    "needs up to 100 times fewer data than supervised training",
)


def get_config(arg=""):
  weights = dict(label=1.0, format=0.2, length=0.2, evidence=0.5)                             # O
  return domains.grpo(
      arg, "decisions", "Name the words that decide, then on a last line the label alone.",
      kinds=("moderation",), min_words=20,                                                    # O
      items=tuple(dict(name=name, weight=w) for name, w in weights.items()))
