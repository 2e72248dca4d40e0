"""GDPO: Group reward-Decoupled Normalization Policy Optimization for
Multi-reward RL Optimization (arXiv:2601.05242): every reward is normalised
in its group before they are added.

  rlx train papers/gdpo workdir=DIR
  rlx train papers/gdpo:smoke workdir=DIR

C the released code (NVlabs/GDPO; its verl whitens over tokens, its TRL over
completions), O ours: the two rewards are the answer and the share of right steps,
there correctness, format and length.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "summed first, different combinations of rewards collapse into one advantage",
    "normalised first, every reward is learned at least as well",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      # C: coef is the weight of a reward, on what its normalisation gives.
      outcome=dict(name="outcome.verdict", coef=1.0),
      steps=dict(name="steps.completion", coef=1.0, kind="mean"))
  c.advantages = dict(
      outcome=dict(name="group.grpo"),                     # C
      steps=dict(name="group.grpo"),                       # C
      whiten=True)       # C, where groups without signal are whitened with the others
  c.learner.aggregation = "token-mean"  # C
  return c
