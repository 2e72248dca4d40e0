"""Beyond Verifiable Rewards: Scaling Reinforcement Learning for Language Models to
Unverifiable Data (arXiv:2503.19618): the objective is a lower bound on the reference answer's
log-prob, from several sampled reasonings. Each reasoning is credited with the difference that
leaving it out makes to the bound.

  rlx train papers/jepo workdir=DIR
  rlx train papers/jepo:smoke workdir=DIR

The multi-sample bound and its control variate are stated in the paper; all other values are
our choice. Differences from the paper: the paper adds the gradient of the answer's own
log-prob and a format penalty; this config has neither.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "on unverifiable data it improves where a verifier's reward cannot",
    "more samples make the bound tighter",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = base.part("mark of the answer")
  c.rewards.outcome = dict(name="likelihood.reference", coef=1.0, agg="log_mean_exp")
  # The reward is the leave-one-out difference already.
  c.advantages.outcome = dict(name="batch.reinforce", use_mean=False)
  return c
