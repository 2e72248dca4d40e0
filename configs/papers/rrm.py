"""Reward Reasoning Model (arXiv:2505.14674). A judge of two answers reasons before its verdict
and learns by RL from the labels of pairs alone: the reward is 1 if it picks the better answer,
else -1.

  rlx train papers/rrm prompts.source=judging:FILE workdir=DIR model.path=MODEL
  rlx evaluate DIR eval.samples=8

FILE has pairs, {"question", "chosen", "rejected"}, or completions with verdicts. The second
command measures single verdicts and votes. Many answers are compared by `knockout` of
rlx/evals/judgements.py, or by `fit_strengths` of rlx/verifiers/judge.py (Elo).

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
prompt and data are not here.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "accuracy rises with more or longer reasoning at test time",
)


def get_config(arg=""):
  c = domains.judge(arg, "pair", both_orders=True)                                            # O
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=2.0))  # P: 1 or -1, less a constant
  return c
