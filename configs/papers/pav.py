"""Rewarding Progress: Scaling Automated Process Verifiers for LLM Reasoning
(arXiv:2410.08146). The reward of a step is its progress: the change, caused by the step, of
the probability that another policy, the prover, reaches the right answer.

  rlx train papers/pav workdir=DIR
  rlx train papers/pav:smoke workdir=DIR

Letters beside the values: P the paper's gradient, in which a step has the weight
Q + alpha A, M from memory of the paper, O our choice.

Differences from the paper: The paper predicts the value after a step with a network, for a
prover that takes the best of 4 completions. This config uses the exact value for a prover
that makes no mistakes.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "progress as the reward does better than the value itself, and than outcomes",
    "the policy itself as the prover gives no gain",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = base.part("checker of what each step leaves possible")  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="steps.refine", coef=5.0,          # M: alpha is 3 to 5
                   kind="advantage", start=1.0))  # O: the prover solves every prompt
  c.advantages = dict(
      outcome=dict(name="group.rloo"),                     # P: Q; O: the baseline
      process=dict(name="process.steps", gamma=0.0),       # P: A of this step only
      whiten=False)
  return c
