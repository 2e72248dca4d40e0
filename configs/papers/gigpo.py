"""Group-in-Group Policy Optimization for LLM Agent Training (arXiv:2505.10978). Each turn has
two advantages: that of its episode among the episodes of the prompt, and its own among the turns
that were taken in the same state.

  rlx train papers/gigpo workdir=DIR
  rlx train papers/gigpo:smoke workdir=DIR

The initial model is that of environments/calculator. Letters beside the values: C taken from the
released code (langfengQ/verl-agent, its examples), O our choice.

Differences from the paper: states are the same if all tokens before them are; the code's penalty
of 0.1 for invalid actions is left out.

Confidence in the formula: high.
"""
from rlx.configs.environments import calculator

CLAIMS = ("does better than GRPO, by more than 12% on ALFWorld and 9% on WebShop",)


def get_config(arg=""):
  c = calculator.get_config(f"outcome-{arg}" if arg else "outcome")
  c.rewards = dict(outcome=dict(name="turns.environment", coef=1.0))  # O: 1 for a right answer
  c.advantages = dict(  # C
      total=dict(name="turns.gigpo", omega=1.0, gamma=0.95, use_std=False), whiten=False)
  c.kl.coef, c.kl.kind, c.kl.place = 0.01, "k3", "loss"  # C
  # C langfengQ/verl-agent, as stored in zhangyun04/verl-agent verl/trainer/ppo/core_algos.py, the
  # default; examples/gigpo_trainer/run_alfworld.sh does not change it.
  c.learner.aggregation = "token-mean"
  return c
