"""What Are Step-Level Reward Models Rewarding? Counterintuitive Findings from MCTS-Boosted
Mathematical Reasoning (arXiv:2412.15904): a reward model learns which of two next steps is better,
from texts of which the natural language is left out or not.

  rlx train_scorer papers/srm_pairs train_scorer.rollouts=PAIRS.jsonl workdir=DIR
  rlx train_scorer papers/srm_pairs:smoke workdir=DIR

A row of the file is a problem with the steps so far, and two next steps. What the model may read is
decided by the texts, with or without the sentences around the formulas (rlx/loops/stored_rows.py):

  {"question": "Tom has 3 + 4 pens.\\n3 + 4 = 7", "chosen": "7 - 2 = 5", "rejected": "7 + 2 = 9"}

Where no file is named, completions of the policy are sampled, and a right one is better than a
wrong one of its group. The chains of the toy have no natural language, so that they show the model
of mathematics alone.

Letters beside the values: P stated in the paper (pairs of steps), O our choice. Differences from
the paper: the tree search that makes its pairs runs outside of rlx; its loss is not stated in the
sources at hand, Bradley-Terry is ours.

Confidence in the formula: medium.
"""
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "without the natural language of the thoughts the models are nearly as good",
    "models of mathematics alone judge how steps cohere, those of natural language do so less",
)


def get_config(arg=""):
  c = implicit_prm.get_config(arg)
  c.train_scorer.labels = "outcome"                               # P
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")   # O
  return c
