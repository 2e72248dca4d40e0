"""Precision over Diversity: High-Precision Reward Generalizes to Robust Instruction Following
(arXiv:2601.04954).

GRPO on instructions that rules check alone, without those for which a model is asked. The
reward is 1 if all instructions of a prompt are followed.

  rlx train papers/high_precision_if workdir=DIR model.path=MODEL
  rlx train papers/high_precision_if:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (constraints that rules check, all have to be
followed), O our choice. Differences from the paper: its filter of what can be learned and its
simplification of constraints are not here; the instructions are made (IFEval's kinds).

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "hard constraints alone do better than a mixture with soft ones that a model judges",
    "13.4% above baselines with 58% less training time",
)


def get_config(arg=""):
  return domains.grpo(arg, "instructions", "Follow all instructions exactly, with the text alone.",
                      verifier="instructions.followed")   # P
