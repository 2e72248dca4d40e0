"""MiCRo: Mixture Modeling and Context-aware Routing for Personalized Preference Learning
(arXiv:2505.24846): a reward model has several heads, one for each kind of taste, and a router that
reads the prompt; from a few pairs of a user the router learns which heads are theirs.

  rlx train_scorer papers/micro train_scorer.rollouts=PAIRS.jsonl workdir=DIR
  rlx train_scorer papers/micro:adapted prm.path=DIR/scorer workdir=USER \\
      train_scorer.rollouts=PAIRS_OF_A_USER.jsonl
  rlx train_scorer papers/micro:smoke workdir=DIR

The second command is the second stage of the paper: of the model of the first one it changes the
weights of the heads alone, to those of the user whose pairs it reads (`adapt_routing`), and writes
a model of this user, USER/scorer, which a run reads as any other scorer.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: all
prompts of a user have their weights changed by the same factors; the paper's second stage updates a
router that also reads a text about the user.

Confidence in the formula: low.
"""
from rlx.configs import base
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "a mixture fits the preferences of several groups that one Bradley-Terry model cannot",
    "few pairs of a user are enough to find their taste",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("mixture", "adapted"))
  c = implicit_prm.get_config(size)
  c.train_scorer.labels = "outcome"                                         # P
  c.train_scorer.head, c.train_scorer.heads = "mixture", 4                  # P, O how many
  c.train_scorer.loss = dict(name="reward_model.mixture")                   # P
  if kind == "adapted": c.steps, c.train_scorer.adapt_rate = 0, 1.0         # O: the posterior
  return c
