"""The Entropy Mechanism of Reinforcement Learning for Reasoning Language Models
(arXiv:2505.22617): Clip-Cov, no gradient for some tokens whose log-prob and
advantage vary together.

  rlx train papers/entropy_mechanism workdir=DIR
  rlx train papers/entropy_mechanism:smoke workdir=DIR
  :kl and :kl-smoke are KL-Cov, a penalty on the tokens where they do so most.

C the released code (7b_clip_cov.sh; KL-Cov as in verl), O ours. Here the share is
one token of a minibatch; Clip-Cov takes those of largest covariance, there random
ones.

Confidence in the formula: high.
"""
from rlx.configs import base
from rlx.configs import quickstart

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
  c.learner.minibatches = 4  # O: off-policy, as there; on-policy KL-Cov's penalty is 0
  return c
