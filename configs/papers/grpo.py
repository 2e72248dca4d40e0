"""DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language
Models (arXiv:2402.03300): the z-scores of a prompt's completions are their
advantages.

  rlx train papers/grpo workdir=DIR
  rlx train papers/grpo:smoke workdir=DIR

P the paper (section 4), O ours. A verdict in place of a reward model; 8
completions, there 64.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("reaches PPO's accuracy without a critic",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # O: inert
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.aggregation = "seq-mean-token-mean"  # P eq. 3
  c.kl.coef, c.kl.kind, c.kl.place = 0.04, "k3", "loss"  # P
  return c
