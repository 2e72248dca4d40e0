"""Beyond the 80/20 Rule: High-Entropy Minority Tokens Drive Effective
Reinforcement Learning for LLM Reasoning (arXiv:2506.01939): the policy gradient is
computed from only the 20% of the tokens at which the policy has the highest entropy.

  rlx train papers/high_entropy_tokens workdir=DIR
  rlx train papers/high_entropy_tokens:smoke workdir=DIR

Letters beside the values: P stated in the paper (section 5.2), O our choice. The other
settings are those of DAPO, without its penalty for overlong completions.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "as good as all tokens with 8B parameters, better with 14B and 32B",
    "the other 80% of the tokens alone are much worse",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # P: as in DAPO
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.28)  # P
  c.learner.token_weight = dict(name="token_weight.top", fraction=0.2)  # P
  c.learner.aggregation = "token-mean"  # P
  c.learner.minibatches = 4  # O: with one minibatch no ratio would be clipped
  return c
