"""Co-Reward: Self-supervised Reinforcement Learning for Large Language Model Reasoning
via Contrastive Agreement (arXiv:2508.00410). GRPO without labels: a completion is
rewarded if its answer agrees with the majority answer to the same question in another
wording.

  rlx train papers/co_reward workdir=DIR
  rlx train papers/co_reward:smoke workdir=DIR

Letters beside the values: C taken from the released code (tmlr-group/Co-Reward,
co_reward.py), which is the reward; O our choice, which is everything else.

Differences from the paper: in the paper a language model rewords the questions once,
before training; this config exchanges the first two digits of a chain. The config key
eval.answer says how an answer is read from a completion.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "majority labels of the other wording are harder to collapse on than those of the prompt "
    "itself",
    "near or above training on true labels, by up to 6.8 points on MATH-500 "
    "(Llama-3.2-3B-Instruct)",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # There is no filter by accuracy: the method needs no verdict.
  c.prompts.dataset, c.prompts.paired = base.part("question in two wordings"), True
  c.rewards.outcome = dict(name="pseudo.paired", coef=1.0)
  # C tmlr-group/Co-Reward coreward/verl/trainer/config/ppo_trainer.yaml, which
  # coreward/math_co_reward.sh does not change.
  c.learner.aggregation = "token-mean"
  return c
