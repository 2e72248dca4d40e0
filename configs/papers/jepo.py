"""Beyond Verifiable Rewards: Scaling Reinforcement Learning for Language Models to
Unverifiable Data (arXiv:2503.19618): a bound on the answer's log-prob over all
reasonings, credited leave-one-out.

  rlx train papers/jepo workdir=DIR
  rlx train papers/jepo:smoke workdir=DIR

P (paper) the multi-sample bound and its control variate; O (ours) all else. Without
the gradient of the answer's own log-prob and without its format penalty.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "on unverifiable data it improves where a verifier's reward cannot",
    "more samples make the bound tighter",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = "#", 1  # the answer is one digit
  c.rewards.outcome = dict(name="likelihood.reference", coef=1.0, agg="log_mean_exp")
  # The reward is the leave-one-out difference already.
  c.advantages.outcome = dict(name="batch.reinforce", use_mean=False)
  return c
