"""Rethinking Rubric Generation for Improving LLM Judge and Reward Modeling for Open-ended Tasks
(arXiv:2602.05125). The reward is a mean of the items of a rubric, whose weights count what
correlated items share only once: w is proportional to S^(-1/2) 1, S the covariance of the items.

  rlx train papers/rrd workdir=DIR
  rlx train papers/rrd:smoke workdir=DIR
  rlx train papers/rrd:judge base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME

Rows with a column `items` have their own rubric. A language model
writes them, and splits items that most completions meet, before the training:

  rlx write base task=rubric rows=FILE to=RUBRICS verifier.judge.url=URL verifier.judge.model=NAME
  rlx write base task=split rows=RUBRICS completions=GRADED to=FINER \
      verifier.judge.url=URL verifier.judge.model=NAME

`items.select` of rlx.rewards is the paper's filter of items that misrank pairs or repeat others,
which runs on stored scores.

Letters beside the values: P stated in the paper, O our choice (the ridge). Differences from the
paper: the words of the requests; S is estimated from the prompt's completions.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "as a reward, refined rubrics with weights by correlation raise the reward by up to 160%, "
    "others by 10% to 20%",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("verifiers", "judge"))
  c = quickstart.grpo(size)  # O: no filter by accuracy, because the verdict is no reward.
  base.use_rubric(c, is_judged=kind == "judge")
  c.rewards = dict(outcome=dict(name="items.whitened", coef=1.0, ridge=0.1))     # P, O the ridge
  return c
