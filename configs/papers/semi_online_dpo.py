"""Bridging Offline and Online Reinforcement Learning for LLMs (arXiv:2506.21495).

DPO is trained on one right and one wrong completion of each group. The completions come from a
sampler whose weights are replaced by the policy's every s steps.

  rlx train papers/semi_online_dpo workdir=DIR
  rlx train papers/semi_online_dpo:smoke workdir=DIR

Letters beside the values: P stated in the paper (s is 1, which is online DPO, or 5, 10 or 100),
O our choice (beta has no published value). As in the paper, the reference stays the initial
policy; kl.sync_every would move it, too.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "semi-online DPO (s = 10) learns far more than offline DPO",
    "semi-online DPO learns as much as online DPO and as GRPO",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # The reward is only logged; the loss reads the verdicts.
  c.advantages.outcome = dict(name="group.rloo")
  c.learner.loss = dict(name="sequence.dpo", dpo_beta=0.1)          # O
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)
  c.rollouts.sync_every = 2 if arg == "smoke" else 10               # P
  return c
