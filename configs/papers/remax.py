"""ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for Aligning Large
Language Models (arXiv:2310.10505). ReMax is REINFORCE whose baseline is the reward of the
greedy completion of the same prompt.

  rlx train papers/remax workdir=DIR
  rlx train papers/remax:smoke workdir=DIR

Letters beside the values: P stated in the paper (one sampled completion for each prompt and
its baseline), O our choice (as many prompts as the quickstart's batch has completions).

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
