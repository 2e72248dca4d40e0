"""R-Horizon: How Far Can Your Large Reasoning Model Really Go in Breadth and Depth?
(arXiv:2510.08189). GRPO is trained on composed prompts: sequences of problems in which each
problem needs the answer of the one before it.

  rlx train papers/r_horizon workdir=DIR
  rlx train papers/r_horizon:smoke workdir=DIR

Letters beside the values: P stated in the paper (n = 2 problems, or 4 with
prompts.columns.problems=4, and a reward only if all answers are right), O our choice
(everything else). For a reward for the last answer alone, set prompts.dataset=chain with
twice as many operations.

Differences from the paper: In this config the second chain starts with the answer of the
first; the paper adds a difference to that answer.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "training on composed problems helps on composed problems, and more than training on single "
    "ones does on single problems",
    "a reward for all answers does better on composed problems than one for the last",
)


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.prompts.dataset = base.part("question made of several")
  c.prompts.columns = dict(problems=2)                                         # P
  c.prompts.options = dict(size=40000, n_min=3, n_max=5, ops="Mm")             # O
  c.prompts.max_tokens = 22
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = 22
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  return c
