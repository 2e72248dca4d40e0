"""Understanding R1-Zero-Like Training: A Critical Perspective
(arXiv:2503.20783): GRPO without the division by the std and by the length.

  rlx train papers/dr_grpo workdir=DIR
  rlx train papers/dr_grpo:smoke workdir=DIR

P the paper, C the released code (sail-sg/understand-r1-zero); 8 completions as
there.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("wrong completions do not grow longer, at the accuracy of GRPO",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages.outcome = dict(name="group.mean_baseline")  # P
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.aggregation = "seq-mean-token-sum-norm"  # P: by rollouts.max_tokens
  c.kl.coef = 0.0  # C
  return c
