"""DuaShepherd: Integrating Stepwise Correctness and Potential Rewards for Mathematical Reasoning
(arXiv:2506.17533): a PRM with two heads learns of each step whether it is right, and whether it
still leads to the answer; the score is the probability of both.

  rlx train_scorer papers/dua_shepherd train_scorer.rollouts=ROWS.jsonl workdir=DIR \\
      train_scorer.held_out=HELD_OUT.jsonl
  rlx train papers/rsbs:scorer scorers.trained.path=DIR/scorer workdir=RL

A row has the first wrong step, as people label it, the values of steps by rollouts, or both
(rlx/loops/stored.py):

  {"question": "...", "completion": "STEP\\nSTEP", "verdict": 0, "label": 1, "values": [1, 0]}

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: a row
with labels of one kind has none of the other; there a model of each kind labels the rows of the
other.

Confidence in the formula: medium.
"""
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "the product of both is better than either, in best-of-n and in finding the first wrong step",
)


def get_config(arg=""):
  c = implicit_prm.get_config(arg)
  c.train_scorer.labels, c.train_scorer.head = "both", "product"            # P
  return c
