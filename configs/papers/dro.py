"""Offline Regularised Reinforcement Learning for Large Language Models
Alignment (arXiv:2405.19107): the policy gradient with a quadratic pull to
the old policy.

  python -m rlx.train --config=configs/papers/dro.py --workdir=DIR
  python -m rlx.train --config=configs/papers/dro.py:smoke --workdir=DIR

P the paper, O ours. Only the form of the loss: the paper is offline, learns a
value and regularises the log-ratio of the completion; here it is that of a
token, and the group's mean is the value.
"""
from configs import quickstart

PAPER = dict(
    title="Offline Regularised Reinforcement Learning for Large Language "
          "Models Alignment",
    arxiv="2405.19107",
    claims=("single completions with rewards suffice, without pairs",),
    confidence="low")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.mean_baseline"),
                      whiten=False)  # O
  c.learner.loss = dict(name="policy.dro", beta=0.5)  # O
  c.learner.aggregation = "token-mean"  # O
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
