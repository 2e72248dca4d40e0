"""Incentivizing Reasoning for Advanced Instruction-Following of Large Language Models
(arXiv:2506.01413).

The reward is the share of instructions of a prompt that rules find followed in the answer,
which stands behind a thought. A thought that does not close has no answer.

  rlx train papers/raif workdir=DIR model.path=MODEL
  rlx train papers/raif:smoke workdir=DIR model.path=MODEL
  rlx train papers/raif:superior workdir=DIR model.path=MODEL

The variant :superior also asks each question without reasoning, and learns only from completions
that follow as much as answers without reasoning do in the mean.

Letters beside the values: P stated in the paper (rewards by rules for constraints), C taken from
the released code (yuleiqin/RAIF), O our choice (the data). Differences from the paper: its
constraints that only a model can check and its behaviour cloning are not here; half of the prompts
of :superior have no reasoning, a quarter of the completions in the code; the instructions are made
(IFEval's kinds).

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "a 1.5B model gains 11.74% and comes near an 8B model on complex instructions",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("all", "superior"))
  c = domains.grpo(size, "instructions", "Think in <think></think>, then follow all instructions "
                   "exactly and reply with the text alone.", verifier="instructions.share",    # P
                   n_min=2, n_max=4)                                                          # O
  if kind == "all": return c
  c.prompts.dataset, c.prompts.paired = "instructions_pairs", True
  c.rollouts.select_completions = dict(name="select_completions.superior")                    # C
  return c
