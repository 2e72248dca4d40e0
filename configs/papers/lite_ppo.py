"""Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning
(arXiv:2508.08221): Lite PPO, the mean of the group, the std of the batch,
the loss by token.

  rlx train papers/lite_ppo workdir=DIR
  rlx train papers/lite_ppo:smoke workdir=DIR

P the paper, O ours. Sampling is not truncated, there top_p is 0.99 and top_k
100.

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
