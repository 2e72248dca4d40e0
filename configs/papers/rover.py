"""Random Policy Valuation is Enough for LLM Reasoning with Verifiable Rewards
(arXiv:2509.24981).

The policy is a softmax of the Q-values of the uniform policy. They are learned by minimising
the squared error of the uniform policy's Bellman equation, instead of with a policy gradient.

  rlx train papers/rover workdir=DIR
  rlx train papers/rover:smoke workdir=DIR

Letters beside the values: C taken from the released code (tinnerhrhe/ROVER, the Math recipe;
the Countdown recipe does not divide the rewards by their standard deviation). All other values
are our choice. Differences from the paper: the released code uses a learning rate of 1e-6 and
128 prompts per step; this config uses those of the quickstart.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "more distinct right completions than with policy optimization",
    "pass@1 +8.2, pass@256 +16.8 and diversity +17.6% against the strongest baselines "
    "(Qwen3-8B-Base; AIME24, AIME25, HMMT25)",
    "in a tree of deterministic moves with rewards 0 or R at the end, greedy on the values of a "
    "uniform policy is optimal",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # C: the estimator.
  c.rollouts.decoding.temperature = 0.6  # C
  c.learner.loss = dict(name="distribution.rover", rho=1.0, next_coef=1.0)  # C
  c.learner.aggregation = "token-mean"  # C
  c.learner.minibatches = 4  # C
  return c
