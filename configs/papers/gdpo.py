"""GDPO: Group reward-Decoupled Normalization Policy Optimization for Multi-reward RL
Optimization (arXiv:2601.05242). Each reward is normalised within its group before the
rewards are added.

  rlx train papers/gdpo workdir=DIR
  rlx train papers/gdpo:smoke workdir=DIR

Letters beside the values: C taken from the released code (NVlabs/GDPO; its version for
verl whitens over tokens, its version for TRL over completions), O our choice.

Differences from the paper: the paper's rewards are correctness, format and length; the
two rewards of this config are the answer and the share of right steps.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "summed first, different combinations of rewards collapse into one advantage",
    "normalised first, every reward is learned at least as well",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = base.part("checker of steps")  # O
  c.rewards = dict(
      # C: coef is the weight of a reward after its normalisation.
      outcome=dict(name="outcome.verdict", coef=1.0),
      steps=dict(name="steps.completion", coef=1.0, kind="mean"))
  c.advantages = dict(
      outcome=dict(name="group.grpo"),                     # C
      steps=dict(name="group.grpo"),                       # C
      whiten=True)       # C: groups without signal are whitened too
  c.learner.aggregation = "token-mean"  # C
  return c
