"""Process Reward Models That Think (arXiv:2504.16828). A model writes a chain of thought about
the steps of a solution and says which is the first wrong one. It is fine-tuned on its own
judgements whose verdicts are the labels.

  rlx train papers/think_prm prompts.source=judging:FILE workdir=DIR model.path=MODEL
  rlx sft papers/think_prm prompts.source=judging:FILE prompts.columns.judgement=judgement \
      workdir=DIR model.path=MODEL

The second command is the paper's: the column `judgement` has judgements that end with a line
"Verdict: N" or "Verdict: none"; those with another verdict than the label are dropped. The
first is RL on the same labels, whose completions.jsonl has such judgements. :step asks about
one step after the other, with a verdict of yes or no, whose p(yes) `rlx evaluate` measures.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: it
states a verdict for every step in one chain of thought; here it states the first wrong step,
which is the same information up to there.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "beats discriminative process reward models with 1% of the labels of PRM800K",
)


def get_config(arg=""):
  form, size = base.variant(arg, ("first_error", "step"))
  return domains.judge(size, form)                                                            # P
