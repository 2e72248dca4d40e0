"""Rethinking the Trust Region in LLM Reinforcement Learning (arXiv:2602.04879). DPPO
gives no gradient to tokens whose probability has already moved too far.

  rlx train papers/dppo workdir=DIR
  rlx train papers/dppo:smoke workdir=DIR
  :kl and :kl-smoke measure this distance by the binary KL divergence of the token
  instead of by its probability.

Letters beside the values: C taken from verl's script for the paper
(run_qwen3_30b_a3b_megatron.sh), O our choice.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "the clip of a ratio stops rare tokens too early and likely ones too late",
    "more stable than GRPO, also where sampler and trainer disagree",
)
LIMIT = dict(tv=0.15, kl=0.05)  # C


def get_config(arg=""):
  distance, size = base.variant(arg, tuple(LIMIT))
  c = quickstart.grpo(size)
  # C: no division by the std
  c.advantages.outcome = dict(name="group.mean_baseline")
  c.learner.loss = dict(name=f"policy.dppo_{distance}", low=LIMIT[distance],
                        high=LIMIT[distance], ratio_cap=20.0)  # C
  c.learner.aggregation = "seq-mean-token-sum-norm"  # C
  c.learner.minibatches = 4  # C: 8; the method's rule has no effect on-policy
  return c
