"""Inference-Time Scaling for Generalist Reward Modeling (arXiv:2504.02495): a judge writes
principles and criticisms and scores several answers from 1 to 10. The reward is 1 if the best
answer alone has the highest score, else -1 (self-principled critique tuning).

  rlx train papers/spct prompts.source=judging:FILE workdir=DIR model.path=MODEL

At test time scores of several judgements are added, of those that a further model rates highest
(`sum_scores` of rlx/evals/judgements.py).

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
rejective fine-tuning before RL is `rlx sft` on the judgements of a run whose verdict is 1; its
meta reward model is not trained here.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "sums over more judgements scale, most with a model that chooses among them",
)


def get_config(arg=""):
  c = domains.judge(arg, "scores", answers=4)                                                 # O
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=2.0))  # P: 1 or -1, less a constant
  return c
