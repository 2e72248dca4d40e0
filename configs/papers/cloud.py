"""Critique-out-Loud Reward Models (arXiv:2408.11791). A model writes a critique of an answer, and a
head that reads question, answer and critique scores the answer.

  rlx sft papers/cloud prompts.source=judging:FILE prompts.columns.critique=critique \
      workdir=DIR/critic model.path=MODEL
  rlx train_scorer papers/cloud:single prompts.source=judging:FILE \
      workdir=DIR/single model.path=DIR/critic/model
  rlx train_scorer papers/cloud prompts.source=judging:FILE \
      workdir=DIR model.path=DIR/critic/model \
      train_scorer.rollouts=critiques:DIR/single/rollouts.jsonl \
      train_scorer.held_out=critiques:DIR/single/held_out.jsonl

FILE has completions with verdicts, and critiques of each by a stronger model in the column
`critique`, from which the critic learns. The second command samples its own critiques of both
answers of pairs (and trains a head on single answers, whose label is which answer of the pair it
is). The third trains the head by the Bradley-Terry loss, on all pairs of a critique of the better
answer and one of the worse; `pair/last` of its summary is the accuracy on held-out pairs.

Letters beside the values: C taken from the released code (zankner/CLoud, cloud/train), O our
choice. Differences from the paper: critic and head are two models, where the paper has one with
both heads and adds 1.25 times the loss of the critiques to that of the head, so that it keeps
writing critiques; the head is linear, and its pairs are several of the same two answers. The mean
over several critiques, and a head that is asked while a policy is trained, are not here.

Confidence in the formula: high.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "tells the better answer of RewardBench by 4.65 to 5.84 points more often than a head without "
    "critiques",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("pairs", "single"))
  c = domains.judge(size, "critique")                                                         # C
  c.prompts.paired = True
  # O: critiques of an answer; of pairs the group has those of both.
  critiques = min(c.rollouts.per_prompt // 2, 4)
  c.rollouts.per_prompt = 2 * critiques if kind == "pairs" else critiques
  c.eval.samples = critiques
  return domains.learn_scorer(c, "bce" if kind == "single" else "bradley_terry")              # C
