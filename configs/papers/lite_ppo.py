"""Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning
(arXiv:2508.08221): Lite PPO subtracts the mean reward of the group, divides by the standard
deviation of the batch and averages the loss over all tokens.

  rlx train papers/lite_ppo workdir=DIR
  rlx train papers/lite_ppo:smoke workdir=DIR

Letters beside the values: P stated in the paper; the other values are our choice. Differences
from the paper: the paper samples with top_p 0.99 and top_k 100; this config does not truncate
the distribution.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("these two choices alone do better than GRPO and DAPO on base models",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages.outcome = dict(name="batch.group_mean_batch_std")  # P
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.aggregation = "token-mean"  # P
  c.kl.coef = 0.0  # P
  return c
