"""Offline Regularised Reinforcement Learning for Large Language Models Alignment
(arXiv:2405.19107). The log-ratio of a completion to the reference policy is fitted to the
amount by which its reward exceeds a learned value.

  rlx train papers/dro workdir=DIR
  rlx train papers/dro:smoke workdir=DIR

Letters beside the values: P stated in the paper, O our choice.

Differences from the paper: the paper learns from a fixed data set with one completion per
prompt and from scores; this config learns from completions of the policy and from
verdicts.

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
  c.learner.minibatches = 4  # O: the method's rule has no effect on-policy
  return c
