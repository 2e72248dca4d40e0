"""REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global
Advantage Normalization (arXiv:2501.03262). The advantage of a token is its reward to go,
which includes the KL penalty, whitened over all tokens of the batch.

  rlx train papers/reinforce_pp workdir=DIR
  rlx train papers/reinforce_pp:smoke workdir=DIR

Letters beside the values: P stated in the paper or taken from verl, O our choice. The
variant with a baseline is reinforce_pp_baseline.py.

Differences from the paper: The paper samples one completion for each prompt. This config
samples 8, and the advantage of each is independent of the other completions of its prompt.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("statistics of the batch overfit less than those of a prompt",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages = dict(total=dict(name="batch.reinforce_pp", gamma=1.0), whiten=False)  # P
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.aggregation = "token-mean"  # O
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k1", "reward"  # P: k1; O: 1e-3
  return c
