"""ConfClip: Confidence-Weighted and Clipped Reward for Reinforcement Learning in LLMs
(arXiv:2509.17730): the verdict as a sign, the completion's clipped confidence as
its size.

  python -m rlx.train --config=configs/papers/conf_clip.py --workdir=DIR
  python -m rlx.train --config=configs/papers/conf_clip.py:smoke --workdir=DIR

O (ours) the formula, its bounds and all else: only the abstract and summaries of
others are known.
"""
from configs import quickstart

PAPER = dict(
    title="ConfClip: Confidence-Weighted and Clipped Reward for Reinforcement Learning in "
          "LLMs",
    arxiv="2509.17730",
    claims=(
        "prompts whose completions are all right or all wrong keep a gradient",
        "completions become shorter",
    ),
    confidence="low")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rewards = dict(outcome=dict(name="likelihood.conf_clip", coef=1.0, low=0.2, high=0.9))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.rollouts.keep = dict(name="keep.everything")  # the claim is about what the band drops
  return c
