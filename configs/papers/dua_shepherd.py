"""DuaShepherd: Integrating Stepwise Correctness and Potential Rewards for Mathematical Reasoning
(arXiv:2506.17533): a PRM with two heads learns of each step whether it is right, and whether it
still leads to the answer; the score is the probability of both.

  rlx train_scorer papers/dua_shepherd train_scorer.rollouts=ROWS.jsonl workdir=DIR \\
      train_scorer.held_out=HELD_OUT.jsonl
  rlx train_scorer papers/dua_shepherd:filled train_scorer.rollouts=ROWS.jsonl workdir=DIR \\
      scorers.trained1.path=RIGHT/scorer scorers.trained2.path=VALUE/scorer
  rlx train papers/rsbs:scorer scorers.trained.path=DIR/scorer workdir=RL

A row has the first wrong step, as people label it, the values of steps by rollouts, or both
(rlx/loops/stored_rows.py):

  {"question": "...", "completion": "STEP\\nSTEP", "verdict": 0, "label": 1, "values": [1, 0]}

Where rows have labels of one kind alone, :filled takes those of the other kind from two models that
learned one kind each (`rlx train_scorer papers/implicit_prm train_scorer.labels=hard`, of rows
whose `values` are people's labels or those of rollouts).

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: labels
by a model are its probabilities.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "the product of both is better than either, in best-of-n and in finding the first wrong step",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("given", "filled"))
  c = implicit_prm.get_config(size)
  c.train_scorer.labels, c.train_scorer.head = "both", "product"            # P
  if kind == "filled":
    c.verifier.scores = base.scored_by(c, "scorer", models=2, gives="probability")
    c.train_scorer.pseudo_labels = True                                     # P
  return c
