"""Offline Regularised Reinforcement Learning for Large Language Models
Alignment (arXiv:2405.19107): the log-ratio of a completion to the reference is
fitted to its reward above a learned value.

  rlx train papers/dro workdir=DIR
  rlx train papers/dro:smoke workdir=DIR

P the paper, O ours: completions of the policy, there of a fixed data set with one
a prompt; verdicts, there scores.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("single completions with rewards suffice, without pairs",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages = dict(total=dict(name="temporal.gae", gamma=1.0, lam=1.0), whiten=False)  # P
  c.value.optimizer.lr = c.learner.optimizer.lr  # P
  c.learner.loss = dict(name="sequence.dro", tau=1.0)  # P
  c.learner.aggregation = "seq-mean-token-sum"  # P
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
