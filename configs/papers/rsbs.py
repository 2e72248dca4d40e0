"""Let's Reinforce Step by Step (arXiv:2311.05821): the reward of PPO is the
product of the scores of the steps.

  rlx train papers/rsbs workdir=DIR
  rlx train papers/rsbs:smoke workdir=DIR

M from memory of the paper, O ours. The scores of steps are the exact
checker's, there a trained PRM's; kind is prod, min, mean or max.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "how scores are aggregated decides what is learned",
    "process rewards help on simple problems and hurt on hard ones",
)


def get_config(arg=""):
  c = quickstart.ppo(arg, lam=1.0)  # PPO; O: the value model's rate is the policy's.
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(process=dict(name="steps.completion", coef=1.0, kind="prod"))
  return c
