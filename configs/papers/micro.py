"""MiCRo: Mixture Modeling and Context-aware Routing for Personalized Preference Learning
(arXiv:2505.24846): a reward model has several heads, one for each kind of taste, and a router that
reads the prompt; from a few pairs of a user the router learns which heads are theirs.

  rlx train_scorer papers/micro train_scorer.rollouts=PAIRS.jsonl workdir=DIR
  rlx train_scorer papers/micro:smoke workdir=DIR

`reward_model.adapt_routing` of rlx.losses is the second stage: the weights of the heads from the
scores of a user's pairs.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
adapted weights are for loops of one's own; a run reads the router's.

Confidence in the formula: low.
"""
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "a mixture fits the preferences of several groups that one Bradley-Terry model cannot",
    "few pairs of a user are enough to find their taste",
)


def get_config(arg=""):
  c = implicit_prm.get_config(arg)
  c.train_scorer.labels = "outcome"                                         # P
  c.train_scorer.head, c.train_scorer.heads = "mixture", 4                  # P, O how many
  c.train_scorer.loss = dict(name="reward_model.mixture")                   # P
  return c
