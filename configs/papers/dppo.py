"""Rethinking the Trust Region in LLM Reinforcement Learning (arXiv:2602.04879):
DPPO, no gradient where a token's probability has moved too far.

  python -m rlx.train --config=configs/papers/dppo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/dppo.py:smoke --workdir=DIR
  :kl and :kl-smoke measure the distance by the token's binary divergence, not by
  its probability.

C verl's script for the paper (run_qwen3_30b_a3b_megatron.sh), O ours.
"""
from configs import base
from configs import quickstart

PAPER = dict(
    title="Rethinking the Trust Region in LLM Reinforcement Learning",
    arxiv="2602.04879",
    claims=(
        "the clip of a ratio stops rare tokens too early and likely ones too "
        "late",
        "more stable than GRPO, also where sampler and trainer disagree"),
    confidence="high")
LIMIT = dict(tv=0.15, kl=0.05)  # C


def get_config(arg=""):
  distance, size = base.variant(arg, tuple(LIMIT))
  c = quickstart.get_config(size)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  # C: no std
  c.advantages = dict(outcome=dict(name="group.mean_baseline"), whiten=False)
  c.learner.loss = dict(name=f"policy.dppo_{distance}", low=LIMIT[distance],
                        high=LIMIT[distance], ratio_cap=20.0)  # C
  c.learner.aggregation = "seq-mean-token-sum-norm"  # C
  c.learner.minibatches = 4  # C: 8; on-policy the rule does nothing
  return c
