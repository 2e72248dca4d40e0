"""ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for Aligning Large
Language Models (arXiv:2310.10505): against the verdict of the prompt's greedy completion.

  rlx train papers/remax workdir=DIR
  rlx train papers/remax:smoke workdir=DIR

P (paper): one completion a prompt and its baseline; O (ours): the quickstart's batch as
that many prompts.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("the greedy completion's reward as the baseline learns faster than REINFORCE without",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.prompts.per_step *= c.rollouts.per_prompt                          # O
  c.rollouts.per_prompt = 1                                            # P
  c.advantages.outcome = dict(name="batch.remax")  # P
  c.learner.loss = dict(name="policy.reinforce")                       # P
  c.learner.aggregation = "seq-mean-token-sum"                         # P
  return c
