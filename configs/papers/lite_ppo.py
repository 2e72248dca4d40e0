"""Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning
(arXiv:2508.08221): Lite PPO, the mean of the group, the std of the batch,
the loss by token.

  python -m rlx.train --config=configs/papers/lite_ppo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/lite_ppo.py:smoke --workdir=DIR

P the paper, O ours. Sampling is not truncated, there top_p is 0.99 and top_k
100.
"""
from configs import quickstart

PAPER = dict(
    title="Part I: Tricks or Traps? A Deep Dive into RL for LLM Reasoning",
    arxiv="2508.08221",
    claims=(
        "these two choices alone do better than GRPO and DAPO on base models",),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="batch.group_mean_batch_std"),
                      whiten=False)  # P
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.aggregation = "token-mean"  # P
  c.kl.coef = 0.0  # P
  return c
