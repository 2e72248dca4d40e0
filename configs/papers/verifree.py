"""Reinforcing General Reasoning without Verifiers (arXiv:2505.21493): RLOO on the
probability of the reference answer after the reasoning.

  rlx train papers/verifree workdir=DIR
  rlx train papers/verifree:smoke workdir=DIR

C (code) sail-sg/VeriFree, run.sh: rloo, 8 completions, no KL. Without its second
gradient, that of the answer's own log-prob, and without the gate on form: on chains
the verdict is about the answer, which this reward does not ask.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("matches or beats training with a model as verifier on MMLU-Pro, GPQA and SuperGPQA",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = "#", 1  # the answer is one digit
  c.rewards.outcome = dict(name="likelihood.reference", coef=1.0, agg="prod_p")  # C
  c.advantages.outcome = dict(name="group.rloo")  # C
  return c
