"""Spurious Rewards: Rethinking Training Signals in RLVR (arXiv:2506.10947).

GRPO is trained on random rewards, drawn independently of the completion, instead of verdicts.
This is a control: the rewards contain no information about the task.

  rlx train papers/spurious_rewards workdir=DIR
  rlx train papers/spurious_rewards:smoke workdir=DIR

Letters beside the values: C taken from the released code (ruixin31/Spurious_Rewards,
auto_verify.py), the probability of a reward of 1. Differences from the paper: the released code
samples 16 completions per prompt, the quickstart 8. Other controls of the paper are
rewards.outcome.kind=inverse and the reward pseudo.wrong_majority; its format control is
missing, because chains have no verifier of the format alone.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "random rewards give Qwen2.5-Math-7B 21 points on MATH-500, true ones 29",
    "on models without that latent skill random rewards give nothing",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy, because it would use the verdicts.
  c.rewards.outcome = dict(name="noise.control", coef=1.0, kind="random", rate=0.5)  # C
  # C ruixin31/Spurious_Rewards code/ttrl/trainer/ppo_trainer.py, OpenRLHF, not verl: packed, the
  # mean is over all tokens, there within 4 completions.
  c.learner.aggregation = "token-mean"
  return c
