"""Confidence as a Reward: Transforming LLMs into Reward Models (arXiv:2510.13501): how
sure the policy is of its own answer, as a reward.

  python -m rlx.train --config=configs/papers/crew.py --workdir=DIR
  python -m rlx.train --config=configs/papers/crew.py:smoke --workdir=DIR

P the paper: the score, the mean probability of the answer's tokens. O ours: learning
from it as a reward, by GRPO; the paper ranks completions with it, and chooses from
right and wrong ones the pairs of DPO.
"""
from configs import quickstart

PAPER = dict(
    title="Confidence as a Reward: Transforming LLMs into Reward Models",
    arxiv="2510.13501",
    claims=(
        "confidence in the answer ranks right completions above wrong ones better than "
        "other training-free scores",
    ),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.likelihood.separator = "#"
  c.rewards = dict(outcome=dict(
      name="likelihood.answer_confidence", coef=1.0, agg="mean_p"))  # P
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)  # O
  c.rollouts.keep = dict(name="keep.everything")  # asks no verdict
  return c
