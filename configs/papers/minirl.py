"""Stabilizing Reinforcement Learning with LLMs: Formulation and Practices
(arXiv:2512.01374): REINFORCE with importance weights between the policy and the sampler.
Tokens that PPO would clip give no gradient.

  rlx train papers/minirl workdir=DIR
  rlx train papers/minirl:smoke workdir=DIR

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
paper trains mixture-of-experts models and replays their routing; the model of this config has
no experts.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "on-policy the plain gradient with the weight is most stable",
    "off-policy the clip becomes necessary",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # P: without division by the standard deviation
  c.advantages.outcome = dict(name="group.mean_baseline")
  c.learner.loss = dict(name="policy.minirl", clip_low=0.2, clip_high=0.27, weight_cap=5.0)  # P
  c.learner.aggregation = "seq-mean-token-sum"  # P: without division by the length
  c.learner.minibatches = 4  # O: with one minibatch no token would be clipped
  return c
