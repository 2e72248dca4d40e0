"""Incentivizing Reasoning for Advanced Instruction-Following of Large Language Models
(arXiv:2506.01413).

The reward is the share of instructions of a prompt that rules find followed in the answer,
which stands behind a thought. A thought that does not close has no answer.

  rlx train papers/raif workdir=DIR model.path=MODEL
  rlx train papers/raif:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (rewards by rules for constraints), O our
choice (the data). Differences from the paper: its constraints that only a model can check, its
filter of samples whose reasoning gains nothing over an answer without one, and its behaviour
cloning are not here; the instructions are made (IFEval's kinds).

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "a 1.5B model gains 11.74% and comes near an 8B model on complex instructions",
)


def get_config(arg=""):
  return domains.grpo(arg, "instructions", "Think in <think></think>, then follow all instructions "
                      "exactly and reply with the text alone.", verifier="instructions.share",  # P
                      n_min=2, n_max=4)                                                        # O
