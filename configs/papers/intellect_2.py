"""INTELLECT-2: A Reasoning Model Trained Through Globally Decentralized
Reinforcement Learning (arXiv:2505.07291): GRPO with an upper bound on the importance ratio
that also holds where the advantage is negative, where PPO's clip sets none.

  rlx train papers/intellect_2 workdir=DIR
  rlx train papers/intellect_2:smoke workdir=DIR

Letters beside the values: P stated in the paper (section 4.1), M from memory of the paper,
O our choice. Differences from the paper: the paper trains on completions that are two to four
steps old and has length rewards; this config trains synchronously and has none.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("the cap keeps gradients from exploding on failures whose ratio is large",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)  # M
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2, ratio_cap=4.0)  # P
  c.learner.aggregation = "token-mean"  # M
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k3", "loss"  # P
  c.learner.minibatches = 4  # O: with one minibatch all ratios are 1
  return c
