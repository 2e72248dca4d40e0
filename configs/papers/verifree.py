"""Reinforcing General Reasoning without Verifiers (arXiv:2505.21493).

RLOO is trained on the probability of the reference answer after the sampled reasoning, so that
no verifier is needed.

  rlx train papers/verifree workdir=DIR
  rlx train papers/verifree:smoke workdir=DIR

Letters beside the values: C taken from the released code (sail-sg/VeriFree, run.sh: RLOO, 8
completions, no KL penalty, and verifree.py). Differences from the paper: its second gradient,
that of the answer's own log-probability, is missing. The gate on the format is missing, too,
because on chains the verdict depends on the answer, which this reward does not check.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("matches or beats training with a model as verifier on MMLU-Pro, GPQA and SuperGPQA",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy, because the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = base.part("mark of the answer")
  c.rewards.outcome = dict(name="likelihood.reference", coef=1.0, agg="prod_p")  # C
  c.advantages.outcome = dict(name="group.rloo")  # C
  # C sail-sg/VeriFree verifree.py, OAT, not verl: summed over tokens, without a division by their
  # number.
  c.learner.aggregation = "seq-mean-token-sum"
  return c
