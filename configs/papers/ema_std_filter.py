"""RLPR: Extrapolating RLVR to General Domains without Verifiers (arXiv:2506.18254). This
config adds the paper's filter: prompts whose rewards have a low standard deviation are
excluded from learning.

  rlx train papers/ema_std_filter workdir=DIR
  rlx train papers/ema_std_filter:smoke workdir=DIR

Letters beside the values: C taken from the released code (OpenBMB/RLPR,
reproduce_qwen.sh). All other values are those of rlpr.py.

Confidence in the formula: high.
"""
from rlx.configs.papers import rlpr

CLAIMS = ("leaving out prompts of little spread stabilises training and learns more",)


def get_config(arg=""):
  c = rlpr.get_config(arg)
  c.learner.reward_std_filter = dict(
      name="reward_std_filter.running_mean", fraction=0.5, decay=0.99,  # C
      start=5, filter_from=10)
  if arg == "smoke":
    c.learner.reward_std_filter.start, c.learner.reward_std_filter.filter_from = 0, 1
  return c
