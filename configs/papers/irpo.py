"""IRPO: Scaling the Bradley-Terry Model via Reinforcement Learning (arXiv:2601.00677). A judge
scores one answer at a time. Judgements of the better answer of a pair are rewarded by how often
their score wins against those of the worse one, in the Bradley-Terry model, and the other way
round.

  rlx train papers/irpo prompts.source=judging:FILE workdir=DIR model.path=MODEL

FILE has pairs, {"question", "chosen", "rejected"}, or completions with verdicts. Both answers
of a pair are in one batch (prompts.paired).

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
comparison of two scores is not verified (rlx/rewards/judging.py).

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "a judge of single answers is as good as one of pairs, with n instead of n (n - 1) judgements",
)


def get_config(arg=""):
  c = domains.judge(arg, "score")                                                             # P
  c.prompts.paired = True
  c.rollouts.per_prompt = min(c.rollouts.per_prompt, 8)                                       # O
  c.rewards = dict(outcome=dict(name="judging.bradley_terry", coef=1.0))                      # P
  return c
