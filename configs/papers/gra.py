"""Stabilizing Long-term Multi-turn Reinforcement Learning with Gated Rewards
(arXiv:2508.10548). Rewards have priorities, and each counts only if all those of a higher
priority meet their thresholds: the rewards of turns only after a good enough outcome.

  rlx train papers/gra workdir=DIR
  rlx train papers/gra:smoke workdir=DIR

The initial model is that of environments/calculator. Letters beside the values: P stated in the
paper, O our choice.

Here the outcome, the reward of the last turn, comes first, then whether all calls could be
parsed, and then the calls that solve a step of the question. Differences from the paper: its
agents repair software, with other rewards and thresholds; a level between outcome and turns is a
score of the whole episode here.

Confidence in the formula: high.
"""
from rlx.configs.environments import calculator

CLAIMS = ("added as they are, rewards of steps grow while the outcome falls; gated they do not",)


def get_config(arg=""):
  c = calculator.get_config(f"outcome-{arg}" if arg else "outcome")
  c.environment.turn_rewards = "calls"  # O
  c.verifier.scores = ("rlx.environments.zoo.calculator:parsed",)  # O
  c.rewards = dict(
      gated=dict(name="turns.gate", coef=1.0, top="last",  # P
                 thresholds=(1.0, 1.0)))  # O
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)  # O
  return c
