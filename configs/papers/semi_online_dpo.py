"""Bridging Offline and Online Reinforcement Learning for LLMs (arXiv:2506.21495): DPO on
a right and a wrong completion of each group, from a sampler synced every s steps.

  rlx train papers/semi_online_dpo workdir=DIR
  rlx train papers/semi_online_dpo:smoke workdir=DIR

P (paper): s one of 1 (online), 5, 10, 100; the reference stays the start. O (ours):
beta. kl.sync_every lets the reference move too.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "semi-online DPO (s = 10) learns far more than offline DPO",
    "semi-online DPO learns as much as online DPO and as GRPO",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # The reward is for the curves alone.
  c.advantages.outcome = dict(name="group.rloo")
  c.learner.loss = dict(name="sequence.dpo", dpo_beta=0.1)          # O
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)
  c.rollouts.sync_every = 2 if arg == "smoke" else 10               # P
  return c
