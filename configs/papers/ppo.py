"""Proximal Policy Optimization Algorithms (arXiv:1707.06347): the clipped
surrogate, with a critic and generalized advantage estimation.

  python -m rlx.train --config=configs/papers/ppo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/ppo.py:smoke --workdir=DIR

P the paper, O ours. A verdict on the last token; one epoch, there 3 to 10.
"""
from configs import quickstart

PAPER = dict(
    title="Proximal Policy Optimization Algorithms",
    arxiv="1707.06347",
    claims=("of the surrogates compared the clipped one with 0.2 does best",),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(
      total=dict(name="temporal.gae",
                 gamma=1.0,                                # O: there 0.99
                 lam=0.95),                                # P
      whiten=True)                                         # O
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2,
                        clip_high=0.2)  # P
  c.learner.aggregation = "token-mean"  # O
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  c.value.optimizer.lr = c.learner.optimizer.lr  # O: as the policy
  return c
