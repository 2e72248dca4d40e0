"""Efficient Reasoning via Reward Model (arXiv:2511.09158): a bonus for being concise
that multiplies the verdict, so that no wrong completion gets it.

  python -m rlx.train --config=configs/papers/crf.py --workdir=DIR
  python -m rlx.train --config=configs/papers/crf.py:smoke --workdir=DIR

P (paper) the product; O (ours) its size and all else. There a learned model scores how
concise a completion is, and the factor is annealed and grows as prompts get easier;
here the score is the length of the prompt's shortest right completion over its own.
Right chains of a prompt have one length: the bonus acts between prompts only.
"""
from configs import quickstart

PAPER = dict(
    title="Efficient Reasoning via Reward Model",
    arxiv="2511.09158",
    claims=(
        "a length reward that is added makes completions and training collapse, one that "
        "multiplies the verdict does not",
    ),
    confidence="low")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rewards = dict(outcome=dict(name="length.concise", coef=1.0, bonus=0.5))   # O
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  return c
