"""Rethinking the Trust Region in LLM Reinforcement Learning (arXiv:2602.04879):
DPPO-TV, where the probability of a token has moved too far there is no
gradient.

  python -m rlx.train --config=configs/papers/dppo_tv.py --workdir=DIR
  python -m rlx.train --config=configs/papers/dppo_tv.py:smoke --workdir=DIR

C verl's script for the paper (run_qwen3_30b_a3b_megatron.sh), O ours. The
variant by divergence is dppo_kl.py.
"""
from configs import quickstart

PAPER = dict(
    title="Rethinking the Trust Region in LLM Reinforcement Learning",
    arxiv="2602.04879",
    claims=(
        "the clip of a ratio stops rare tokens too early and likely ones too "
        "late",
        "more stable than GRPO, also where sampler and trainer disagree"),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  # C: no std
  c.advantages = dict(outcome=dict(name="group.mean_baseline"), whiten=False)
  c.learner.loss = dict(name="policy.dppo_tv", low=0.15, high=0.15,
                        ratio_cap=20.0)  # C
  c.learner.aggregation = "seq-mean-token-sum-norm"  # C
  c.learner.minibatches = 4  # C: 8; on-policy the rule does nothing
  return c
