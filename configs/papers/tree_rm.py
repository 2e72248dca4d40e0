"""Reward Generalization in RLHF: A Topological Perspective (arXiv:2402.10184): the pairs from which
a reward model learns are leaves of a tree of completions that share what they begin with.

  rlx train_scorer papers/tree_rm workdir=DIR
  rlx train_scorer papers/tree_rm:chain workdir=DIR
  rlx train_scorer papers/tree_rm:smoke workdir=DIR

The policy samples completions of a prompt, and eight that go on from one of the steps of each,
drawn at random: leaves of which a right one is better than a wrong one. The variant :chain compares
the completions that are sampled alone, the paper's rival.

Letters beside the values: P stated in the paper, as its summaries describe it, O our choice.
Differences from the paper: verdicts say which of two leaves is better, there people or a language
model; the tree has two levels.

Confidence in the formula: low.
"""
from rlx.configs import base
from rlx.configs.papers import implicit_prm

CLAIMS = ("pairs of a tree train a better reward model than as many of completions sampled alone",)


def get_config(arg=""):
  kind, size = base.variant(arg, ("tree", "chain"))
  c = implicit_prm.get_config(size)
  c.train_scorer.labels = "outcome"                                         # P
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")             # P
  c.train_scorer.tree = kind == "tree"                                      # P
  return c
