"""Spurious Rewards: Rethinking Training Signals in RLVR (arXiv:2506.10947): GRPO on a
coin instead of a verdict, as a control.

  rlx train papers/spurious_rewards workdir=DIR
  rlx train papers/spurious_rewards:smoke workdir=DIR

C (code) the coin's rate (ruixin31/Spurious_Rewards, auto_verify.py; 16 completions
there). Other controls: rewards.outcome.kind=inverse, or the reward
pseudo.wrong_majority. Chains have no verifier of format alone, so that the format
control is not here.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "random rewards give Qwen2.5-Math-7B 21 points on MATH-500, true ones 29",
    "on models without that latent skill random rewards give nothing",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: it would use the verdicts.
  c.rewards.outcome = dict(name="noise.control", coef=1.0, kind="random", rate=0.5)  # C
  return c
