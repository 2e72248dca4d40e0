"""ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for Aligning Large
Language Models (arXiv:2310.10505): against the verdict of the prompt's greedy completion.

  python -m rlx.train --config=configs/papers/remax.py --workdir=DIR
  python -m rlx.train --config=configs/papers/remax.py:smoke --workdir=DIR

P (paper): one completion a prompt and its baseline; O (ours): the quickstart's batch as
that many prompts.
"""
from configs import quickstart

PAPER = dict(
    title="ReMax: A Simple, Effective, and Efficient Reinforcement Learning Method for "
          "Aligning Large Language Models",
    arxiv="2310.10505",
    claims=(
        "the greedy completion's reward as the baseline learns faster than REINFORCE without",
    ),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.prompts.per_step *= c.rollouts.per_prompt                          # O
  c.rollouts.per_prompt = 1                                            # P
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="batch.remax"), whiten=False)  # P
  c.learner.loss = dict(name="policy.reinforce")                       # P
  c.learner.aggregation = "seq-mean-token-sum"                         # P
  return c
