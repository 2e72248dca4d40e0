"""Stabilizing Reinforcement Learning with LLMs: Formulation and Practices
(arXiv:2512.01374): REINFORCE weighted for what the sampler drew, where PPO
would not clip.

  rlx train papers/minirl workdir=DIR
  rlx train papers/minirl:smoke workdir=DIR

P the paper, O ours. No mixture of experts here, so no replayed routing.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "on-policy the plain gradient with the weight is most stable",
    "off-policy the clip becomes necessary",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # P: no std
  c.advantages.outcome = dict(name="group.mean_baseline")
  c.learner.loss = dict(name="policy.minirl", clip_low=0.2, clip_high=0.27, weight_cap=5.0)  # P
  c.learner.aggregation = "seq-mean-token-sum"  # P: not by length
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
