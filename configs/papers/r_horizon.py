"""R-Horizon: How Far Can Your Large Reasoning Model Really Go in Breadth and Depth?
(arXiv:2510.08189): GRPO on problems in a row, each of which needs the answer of the one
before.

  rlx train papers/r_horizon workdir=DIR
  rlx train papers/r_horizon:smoke workdir=DIR

P (paper) n = 2 problems (4 with prompts.columns.problems=4), a reward for all
answers right; O (ours) all else. Only the last answer: prompts.dataset=chain
with twice the operations. A chain of two starts where the first ends, without the
difference that the paper adds.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "training on composed problems helps on composed problems, and more than training on single "
    "ones does on single problems",
    "a reward for all answers does better on composed problems than one for the last",
)


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.prompts.dataset, c.prompts.columns = "chain_horizon", dict(problems=2)     # P
  c.prompts.options = dict(size=40000, n_min=3, n_max=5, ops="Mm")             # O
  c.prompts.max_tokens = 22
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = 22
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  return c
