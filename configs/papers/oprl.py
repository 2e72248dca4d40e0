"""Agentic Reinforcement Learning with Implicit Step Rewards (arXiv:2509.19199), first
called Online Process Reward Learning: an implicit PRM learns step rewards with the DPO loss
from pairs of a right and a wrong completion. Its reference is the policy before the update.

  rlx train papers/oprl workdir=DIR
  rlx train papers/oprl:smoke workdir=DIR

Letters beside the values: P stated in the paper (the loss, the reference and both advantages,
each normalised within its group), C taken from the released code (CharacterRL-iStar of
Tongyi-ConvAI/Tongyi-Character: coefficient 1, beta 0.05). Beta and the learning rate are those
of the quickstart. Differences from the paper: a step of the paper is a turn of the dialogue; a
step of this config is one token, because no estimator spreads the reward of a longer step over
its tokens and leaves out the steps after it. The loss of the code is the mean over the steps;
the loss of this config is their sum.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "step rewards learned from pairs of trajectories reach a success rate in fewer samples than "
    "outcomes alone, and than PRIME",
)


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")         # C
  c.prm.loss = dict(name="prm.dpo")                       # P trajectory-level DPO
  c.prm.reference = "policy"                              # P
  c.rewards.process = dict(name="implicit.process", coef=1.0, granularity="token", norm="none")
  c.advantages = dict(
      outcome=dict(name="group.rloo"),                    # P or mean-only GRPO
      process=dict(name="process.rloo", gamma=0.0, loo="strict"),  # P no step after it
      whiten=False)
  return c
