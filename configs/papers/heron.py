"""Deep Reinforcement Learning from Hierarchical Weak Preference Feedback (arXiv:2309.02632). Two
completions are compared by factors in the order of their importance: the first one that differs
enough decides. The reward is how many of the prompt's other completions one beats.

  rlx train papers/heron workdir=DIR
  rlx train papers/heron:smoke workdir=DIR

Letters beside the values: P stated in the paper (the comparison), O our choice (the factors, which
are scores of verifiers, and their thresholds). Differences from the paper: it trains a reward model
on the labels of pairs, and PPO on that; here the comparisons are the reward of GRPO, and
`shaping.order` of rlx.rewards gives the labels. The paper's later title is Deep Reinforcement
Learning from Hierarchical Preference Design.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("ranked factors do as well as tuned weights of the same factors, with less tuning",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # O: no filter by accuracy, because the verdict is one of the factors.
  c.verifier.scores = (base.part("verifier of answers"), base.part("graded verifier"))
  c.rewards = dict(outcome=dict(                                                 # P, O thresholds
      name="shaping.hierarchical", coef=1.0, thresholds=(0.5, 0.1)))
  return c
