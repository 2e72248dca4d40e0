"""Direct Reasoning Optimization: LLMs Can Reward And Refine Their Own Reasoning for
Open-Ended Tasks (arXiv:2506.13351). The reward of a reasoning is the log-probability of
the reference answer after it, and the tokens of the answer are weighted by how much the
reasoning changes their log-probabilities.

  rlx train papers/dro_r3 workdir=DIR
  rlx train papers/dro_r3:smoke workdir=DIR

Letters beside the values: P stated in the paper (weights that grow with the spread of a
token over the group; not verified against the paper's text), O our choice (the weight, which
is the spread itself, and all numbers).

Differences from the paper: the paper subtracts the log-probability without reasoning, which is
the same for all completions of a prompt, so that GRPO removes it again; it is left out. The
third version of the paper (May 2026) adds rubric gates, hard checks of the answer at the level of
the group; they are missing, as are the paper's filters. The reference is the last step and the
answer, as in "5#5", so that there are several tokens to weight.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("a plain mean dilutes the signal on long references; the weights restore it",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # There is no filter by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.answer, c.likelihood.max_tokens = base.part(
      "mark of the last step")
  c.rewards.outcome = dict(
      name="likelihood.reference", coef=1.0, agg="mean_lp", token_weight="group_std")
  return c
