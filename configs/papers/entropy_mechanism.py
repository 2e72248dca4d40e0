"""The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models
(arXiv:2505.22617). Clip-Cov gives no gradient to some of the tokens whose log-probability
and advantage have a high covariance.

  rlx train papers/entropy_mechanism workdir=DIR
  rlx train papers/entropy_mechanism:smoke workdir=DIR
  :kl and :kl-smoke run KL-Cov, a penalty on the tokens of the highest covariance.

Letters beside the values: C taken from the released code (7b_clip_cov.sh; KL-Cov as in
verl), O our choice.

Differences from the paper: in this task the share amounts to one token of a minibatch.
The paper's Clip-Cov takes random tokens of high covariance, this config those of the
highest covariance.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "accuracy is bought with entropy, which covariance drives down",
    "average of seven benchmarks 38.6 -> 40.4 (Clip-Cov), 40.6 (KL-Cov) against GRPO (Qwen2.5-7B)",
)
LOSSES = dict(  # C
    clip=dict(name="policy.clip_cov", clip_low=1.0, clip_high=1.0, fraction=2e-4,
              cov_low=1.0, cov_high=5.0),
    kl=dict(name="policy.kl_cov", fraction=2e-4, kl_coef=1.0))


def get_config(arg=""):
  loss, size = base.variant(arg, tuple(LOSSES))
  c = quickstart.grpo(size)
  c.learner.loss = LOSSES[loss]
  c.learner.aggregation = "token-mean"  # C
  c.learner.minibatches = 4  # O: off-policy, as in the paper; on-policy KL-Cov's penalty is 0
  return c
