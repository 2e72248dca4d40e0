"""Likelihood-Based Reward Designs for General LLM Reasoning (arXiv:2602.03979): RLOO with the
log-prob of the reference answer after the sampled reasoning as the reward.

  rlx train papers/ll_rew workdir=DIR
  rlx train papers/ll_rew:smoke workdir=DIR

The paper recommends the log-prob as the reward; the estimator and all values are our choice.
The paper compares it with RLPR, VeriFree, JEPO and NOVER, which have configs of their own.
Set rewards.outcome.agg=mean_lp for the log-prob per token; the result is the same on this
task, because the answer is one token.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "log-prob rewards work for short and long answers; probabilities go flat on long ones",
    "log-prob rewards give much better perplexity of the answer",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = base.part("mark of the answer")
  c.rewards.outcome = dict(name="likelihood.reference", coef=1.0, agg="sum_lp")
  c.advantages.outcome = dict(name="group.rloo")
  return c
