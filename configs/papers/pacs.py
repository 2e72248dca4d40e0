"""Implicit Actor Critic Coupling via a Supervised Learning Framework for RLVR
(arXiv:2509.02522). PACS trains with a cross-entropy loss: the verdict is the label of a
completion, and its logit is the completion's log-ratio to the old policy less the mean of
those of the other completions in its group.

  rlx train papers/pacs workdir=DIR
  rlx train papers/pacs:smoke workdir=DIR

Letters beside the values: C taken from the released code (ritzz-ai/PACS), O our choice.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "the first step's gradient is that of REINFORCE with leave-one-out",
    "later ones damp themselves: no clip is needed",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # O: these advantages are only logged, the loss does not read them.
  c.advantages.outcome = dict(name="group.rloo")
  c.learner.loss = dict(name="sequence.pacs", score_scale=1.0)  # C
  c.learner.aggregation = "seq-mean-token-mean"  # C
  c.learner.minibatches = 4  # O: in the first minibatch all scores are 0
  return c
