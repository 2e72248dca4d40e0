"""REINFORCE++: Stabilizing Critic-Free Policy Optimization with Global
Advantage Normalization (arXiv:2501.03262): rewards to go, with KL, whitened
over all tokens of the batch.

  rlx train papers/reinforce_pp workdir=DIR
  rlx train papers/reinforce_pp:smoke workdir=DIR

P the paper and verl, O ours. 8 completions of a prompt that do not know of each other,
there one; the variant with a baseline is reinforce_pp_baseline.py.

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
