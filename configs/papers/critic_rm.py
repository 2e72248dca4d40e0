"""Self-Generated Critiques Boost Reward Modeling for Language Models (arXiv:2411.16646). A model
writes critiques of answers, of which those are kept that agree with the label of the answer; a head
that reads question, answer and critique scores the answer.

  rlx sft papers/critic_rm:critic prompts.source=judging:FILE prompts.columns.judgement=critique \
      workdir=DIR/critic model.path=MODEL
  rlx train_scorer papers/critic_rm:single prompts.source=judging:FILE \
      workdir=DIR/single model.path=DIR/critic/model
  rlx train_scorer papers/critic_rm prompts.source=judging:FILE \
      workdir=DIR model.path=DIR/critic/model \
      train_scorer.rollouts=critiques:DIR/single/rollouts.jsonl \
      train_scorer.held_out=critiques:DIR/single/held_out.jsonl

The column `critique` has critiques by the model itself that end with a line "Verdict: yes" or
"Verdict: no"; the first command drops those that contradict the label. The others are those of
papers/cloud.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: critic
and head are two models that learn one after the other; the paper trains one model on both losses,
and moves the weight from the critiques to the head while it trains. Its critiques state a score,
here a verdict, and are kept by it alone.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.bases import domains
from rlx.configs.papers import cloud

CLAIMS = (
    "tells the better answer 3.7% to 7.3% more often than reward models and judges without it",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("pairs", "single", "critic"))
  if kind == "critic": return domains.judge(size, "verdict")                                  # P
  return cloud.get_config("-".join(x for x in (kind, size) if x))                             # O
