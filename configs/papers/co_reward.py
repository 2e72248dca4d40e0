"""Co-Reward: Self-supervised Reinforcement Learning for Large Language Model Reasoning
via Contrastive Agreement (arXiv:2508.00410): GRPO on agreement with the majority answer
to the question in another wording, no label.

  rlx train papers/co_reward workdir=DIR
  rlx train papers/co_reward:smoke workdir=DIR

C (code) the reward (tmlr-group/Co-Reward, co_reward.py); O (ours) all else. There a
language model words the questions anew, once and before training; here a chain's first
two digits change places. What counts as an answer is eval.answer.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "majority labels of the other wording are harder to collapse on than those of the prompt "
    "itself",
    "near or above training on true labels, by up to 6.8 points on MATH-500 "
    "(Llama-3.2-3B-Instruct)",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.prompts.dataset, c.prompts.paired = "chain_pairs", True
  c.rewards.outcome = dict(name="pseudo.paired", coef=1.0)
  return c
