"""VESPO: Variational Sequence-Level Soft Policy Optimization for Stable
Off-Policy LLM Training (arXiv:2602.10693): a smooth weight of the
probability ratio of the whole completion.

  rlx train papers/vespo workdir=DIR
  rlx train papers/vespo:smoke workdir=DIR

C TRL's form and constants, O ours. The sampler is the policy at the start of
the step.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("stays stable far off-policy, without normalising by length",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="sequence.vespo", k_pos=2.0, lambda_pos=3.0,
                        k_neg=3.0, lambda_neg=2.0)         # C
  c.learner.aggregation = "token-mean"  # O
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
