"""Unlocking Exploration in RLVR: Uncertainty-aware Advantage Shaping for Deeper
Reasoning (arXiv:2510.10649).

The advantages of GRPO are increased for right completions of which the policy is uncertain and
decreased for wrong ones of which it is certain. In addition, every token receives a penalty that
grows with its logit.

  rlx train papers/ucas workdir=DIR
  rlx train papers/ucas:smoke workdir=DIR

Letters beside the values: C taken from the released code (xvolcano02/UCAS,
train_ucas_math_7b.sh), O our choice. Differences from the paper: the released script samples 16
completions for each of 1024 prompts and splits them into 8 minibatches; this config has the
sizes of the quickstart and 4 minibatches.

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
  c.learner.minibatches = 4  # O: in a single on-policy update the clip would have no effect
  return c
