"""Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper
Reasoning (arXiv:2510.10649): unsure right completions learn more, sure wrong ones
lose more, and sure tokens pay.

  rlx train papers/ucas workdir=DIR
  rlx train papers/ucas:smoke workdir=DIR

C the released code (xvolcano02/UCAS, train_ucas_math_7b.sh), O ours. There 16
completions of 1024 prompts, in 8 minibatches.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "entropy stays higher than with GRPO, at no less reward",
    "completions grow longer than with GRPO",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages.outcome = dict(name="group.ucas", beta_pos=0.25, beta_neg=0.35, penalty=0.05)  # C
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2, dual_clip=3.0)  # C
  c.learner.aggregation = "token-mean"  # C
  c.learner.minibatches = 4  # O: on-policy the clip does nothing
  return c
