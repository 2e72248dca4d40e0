"""Verifiable by Design: Aligning Language Models to Quote from Pre-Training Data
(arXiv:2404.03862).

DPO on the completions of each group with the highest and the lowest share of 25-character
n-grams that stand in the sources (QUIP).

  rlx train papers/quote_tuning workdir=DIR model.path=MODEL
  rlx train papers/quote_tuning:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (QUIP, DPO), O our choice. Differences from
the paper: its corpus is Wikipedia, here each prompt has its sources; pairs need neither a
least difference of QUIP nor a similar length; completions are those of the policy and not of
the base model.

The figures of CLAIMS are those of the abstract on arXiv, first version; that of NAACL 2025 says
up to 130%.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "quotes rise by 55% to 130% over the model without it, at the same quality of answers",
)


def get_config(arg=""):
  c = domains.grpo(arg, "facts", "Answer in one sentence with the words of the text.",
                   verifier="coverage.quotes")                                                # P
  c.advantages.outcome = dict(name="group.rloo")  # Only logged; the loss reads the verdicts.
  c.learner.loss = dict(name="sequence.dpo", dpo_beta=0.1)                                    # O
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)
  return c
