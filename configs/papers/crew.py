"""Confidence as a Reward: Transforming LLMs into Reward Models (arXiv:2510.13501): how
sure the policy is of its own answer, as a reward.

  python -m rlx.train --config=configs/papers/crew.py --workdir=DIR
  python -m rlx.train --config=configs/papers/crew.py:smoke --workdir=DIR

O (ours) nearly all: the paper scores completions and makes preference pairs with
it, it does not train on it; the mean over the answer's tokens is assumed. A reward
of confidence alone.
"""
from configs import quickstart

PAPER = dict(
    title="Confidence as a Reward: Transforming LLMs into Reward Models",
    arxiv="2510.13501",
    claims=(
        "confidence in the answer ranks right completions above wrong ones better than "
        "other training-free scores",
    ),
    confidence="low")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.likelihood.separator = "#"
  c.rewards = dict(outcome=dict(
      name="likelihood.answer_confidence", coef=1.0, agg="mean_p"))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.rollouts.keep = dict(name="keep.everything")  # asks no verdict
  return c
