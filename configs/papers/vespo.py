"""VESPO: Variational Sequence-Level Soft Policy Optimization for Stable
Off-Policy LLM Training (arXiv:2602.10693).

The loss of every token is weighted by a smooth function of the probability ratio of the whole
completion, which falls to 0 for very small and very large ratios.

  rlx train papers/vespo workdir=DIR
  rlx train papers/vespo:smoke workdir=DIR

Letters beside the values: C the form and constants of TRL's code, O our choice. The ratio is
taken to the sampler, which is the policy at the start of the step.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("stays stable far off-policy, without normalising by length",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="sequence.vespo", k_pos=2.0, lambda_pos=3.0,
                        k_neg=3.0, lambda_neg=2.0)         # C
  c.learner.aggregation = "token-mean"  # O
  c.learner.minibatches = 4  # O: in a single on-policy update the weight would have no effect
  return c
