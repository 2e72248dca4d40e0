"""Direct Reasoning Optimization: LLMs Can Reward And Refine Their Own Reasoning for
Open-Ended Tasks (arXiv:2506.13351): the reference's log-prob, its tokens weighted
by how much the reasoning moves them.

  rlx train papers/dro_r3 workdir=DIR
  rlx train papers/dro_r3:smoke workdir=DIR

P (paper) weights that grow with the tokens' spread over the group and the base
without reasoning, unchecked; O (ours) the weight (the spread itself) and all
numbers; without its filters. So that there are tokens to weigh the reference is the
last step and the answer, as "5#5".

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("a plain mean dilutes the signal on long references; the weights restore it",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.answer = ";", "{}#{}"
  c.likelihood.max_tokens = 3
  c.rewards.outcome = dict(
      name="likelihood.reference", coef=1.0, agg="mean_lp", token_weight="group_std",
      baseline="diff")
  return c
