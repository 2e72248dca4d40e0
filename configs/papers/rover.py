"""Random Policy Valuation is Enough for LLM Reasoning with Verifiable Rewards
(arXiv:2509.24981): the policy is a softmax of the values of a uniform one, learned
by the squared error of their Bellman equation.

  rlx train papers/rover workdir=DIR
  rlx train papers/rover:smoke workdir=DIR

C the released code (tinnerhrhe/ROVER, Math; Countdown leaves the division by std
out), O ours. There lr 1e-6, 128 prompts.

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
