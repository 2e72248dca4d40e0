"""Unleashing Implicit Rewards: Prefix-Value Learning for Distribution-Level Optimization, its
DistRL (arXiv:2604.13197). A step trains, besides the token that was drawn, all tokens that were
likely in its place, by what the PRM of prefixes (papers/ipvrm) thinks of each.

  rlx train papers/distrl workdir=DIR
  rlx train papers/distrl:smoke workdir=DIR

For each completion token the log-probs of the whole vocabulary, of the policy before and during its
update, of the PRM and of its reference, must fit into memory.

Letters beside the values: C taken from the released code (gaoshiping/IPVRM at b3ddd9a), P from the
paper. All else is papers/ipvrm. There the PRM is trained before RL, too.

Confidence in the formula: high.
"""
from rlx.configs.papers import ipvrm

CLAIMS = (
    "with the same PRM, learns more than from the drawn tokens alone",
    "gains more than GRPO, PRIME and SPRO",
)


def get_config(arg=""):
  c = ipvrm.get_config(arg)
  c.prm.reference = "policy"  # C, P
  c.learner.loss = dict(
      name="distribution.distrl", alpha=0.1, min_p=0.1,                      # C, P
      clip_low=0.2, clip_high=0.28, clip=0.2, dual_clip=3.0)                 # C
  return c
