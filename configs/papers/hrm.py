"""Towards Hierarchical Multi-Step Reward Models for Enhanced Reasoning in Large Language Models
(arXiv:2503.13551): a PRM learns single steps, and two steps as one, which are right if the later
one repairs the earlier.

  rlx train_scorer papers/hrm workdir=DIR
  rlx train_scorer papers/hrm:smoke workdir=DIR

Each completion is learned twice: as it is, and with two neighbouring steps, drawn at random, as one
(`merge_steps`, the compression of nodes of the paper), whose label is that of the later one.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
labels are those of rollouts from each step of single completions, there from the nodes of a search
tree; the text between two steps that are one stays as it is.

Confidence in the formula: medium.
"""
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "best-of-n stays stable where a PRM of single steps becomes worse with more completions",
    "it finds that a later step has corrected an earlier one",
)


def get_config(arg=""):
  c = implicit_prm.get_config(arg)
  c.train_scorer.labels, c.train_scorer.merge_steps = "until_first_zero", True  # P, O the kind
  return c
