"""IFDECORATOR: Wrapping Instruction Following Reinforcement Learning with Verifiable Rewards
(arXiv:2508.04632).

The reward is 1 if rules find all instructions of a prompt followed, and 0 otherwise: the first
gate of the paper.

  rlx train papers/if_decorator workdir=DIR model.path=MODEL
  rlx train papers/if_decorator:smoke workdir=DIR model.path=MODEL

Letters beside the values: C taken from the released code (guox18/IFDecorator,
recipe/reward/cif.py), O our choice. Differences from the paper: the gates behind the rules,
which ask a model for the intent and a checklist, are not here (a judge as the second verifier
and `outcome.stages` add them), nor its flywheel of prompts by difficulty and its trip-wire
prompts; the instructions are made (IFEval's kinds). An answer that is cut off is 0 and not -1.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: high.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "Qwen2.5-32B-Instruct reaches 87.43% on IFEval",
    "the check of intent lowers the rate of reward hacking that trip-wire prompts show",
)


def get_config(arg=""):
  return domains.grpo(arg, "instructions", "Follow all instructions exactly, with the text alone.",
                      verifier="instructions.followed", n_min=2, n_max=5)  # C all of them; O 2 to 5
