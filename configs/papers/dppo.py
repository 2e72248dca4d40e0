"""Rethinking the Trust Region in LLM Reinforcement Learning (arXiv:2602.04879):
DPPO, no gradient where a token's probability has moved too far.

  rlx train papers/dppo workdir=DIR
  rlx train papers/dppo:smoke workdir=DIR
  :kl and :kl-smoke measure the distance by the token's binary divergence, not by
  its probability.

C verl's script for the paper (run_qwen3_30b_a3b_megatron.sh), O ours.

Confidence in the formula: high.
"""
from rlx.configs import base
from rlx.configs import quickstart

CLAIMS = (
    "the clip of a ratio stops rare tokens too early and likely ones too late",
    "more stable than GRPO, also where sampler and trainer disagree",
)
LIMIT = dict(tv=0.15, kl=0.05)  # C


def get_config(arg=""):
  distance, size = base.variant(arg, tuple(LIMIT))
  c = quickstart.grpo(size)
  # C: no std
  c.advantages.outcome = dict(name="group.mean_baseline")
  c.learner.loss = dict(name=f"policy.dppo_{distance}", low=LIMIT[distance],
                        high=LIMIT[distance], ratio_cap=20.0)  # C
  c.learner.aggregation = "seq-mean-token-sum-norm"  # C
  c.learner.minibatches = 4  # C: 8; on-policy the rule does nothing
  return c
