"""Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR
(arXiv:2509.02522): the verdict is the label of a completion's score within
its group.

  rlx train papers/pacs workdir=DIR
  rlx train papers/pacs:smoke workdir=DIR

C the released code (ritzz-ai/PACS), O ours.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "the first step's gradient is that of REINFORCE with leave-one-out",
    "later ones damp themselves: no clip is needed",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # O: only logged
  c.advantages.outcome = dict(name="group.rloo")
  c.learner.loss = dict(name="sequence.pacs", score_scale=1.0)  # C
  c.learner.aggregation = "seq-mean-token-mean"  # C
  c.learner.minibatches = 4  # O: at the first all scores are 0
  return c
