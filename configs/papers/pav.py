"""Rewarding Progress: Scaling Automated Process Verifiers for LLM Reasoning
(arXiv:2410.08146): a step is paid by how much it changes the chance of
another policy, the prover.

  rlx train papers/pav workdir=DIR
  rlx train papers/pav:smoke workdir=DIR

P the paper's gradient, in which a step weighs Q + alpha A; M from memory of it, O
ours. The value after a step is exact, of a prover who makes no mistakes; there it is
of one who takes the best of 4, predicted by a network.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "progress as the reward does better than the value itself, and than outcomes",
    "the policy itself as the prover gives no gain",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = "chain.recoverable"  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="steps.refine", coef=5.0,          # M: alpha is 3 to 5
                   kind="advantage", start=1.0))  # O: the prover solves every question
  c.advantages = dict(
      outcome=dict(name="group.rloo"),                     # P: Q; O: its baseline
      process=dict(name="process.steps", gamma=0.0),       # P: A of the step alone
      whiten=False)
  return c
