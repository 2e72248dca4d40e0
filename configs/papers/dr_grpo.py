"""Understanding R1-Zero-Like Training: A Critical Perspective (arXiv:2503.20783). GRPO
without the division by the standard deviation of the group and by the length of the
completion.

  rlx train papers/dr_grpo workdir=DIR
  rlx train papers/dr_grpo:smoke workdir=DIR

Letters beside the values: P stated in the paper, C taken from the released code
(sail-sg/understand-r1-zero). As in the paper, each prompt has 8 completions.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("wrong completions do not grow longer, at the accuracy of GRPO",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages.outcome = dict(name="group.mean_baseline")  # P
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.aggregation = "seq-mean-token-sum-norm"  # P: divides by rollouts.max_tokens
  c.kl.coef = 0.0  # C
  return c
