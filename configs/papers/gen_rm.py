"""Generative Verifiers: Reward Modeling as Next-Token Prediction (arXiv:2408.15240). A language
model answers whether a solution is right; the probability of its yes is the score. It also
learns to write right solutions.

  rlx sft papers/gen_rm prompts.mixture.judged.source=judging:FILE \
      prompts.mixture.solved.source=ROWS workdir=DIR model.path=MODEL
  rlx sft papers/gen_rm prompts.mixture.judged.source=judging:FILE \
      prompts.mixture.judged.columns.judgement=rationale \
      prompts.mixture.solved.source=ROWS workdir=DIR model.path=MODEL
  rlx evaluate papers/gen_rm:judge prompts.source=judging:FILE model.path=DIR/model eval.samples=32

The second command learns rationales before the verdict (GenRM-CoT), from the column
`rationale`. The last one gives p(yes) without a rationale, its mean over 32 rationales, and
votes. ROWS has questions and right solutions, in the columns `question` and `answer`; :judge
learns verdicts alone.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
weight of right solutions, 1/3 in the paper, is their share among the examples, for which
prompts.mixture.NAME.limit is there; p(yes) is against no, and not among all tokens.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.bases import domains

CLAIMS = (
    "verifiers that answer with a token are better than those with a head, and better still " 
    "after a rationale",
    "a verifier that also learns to generate right solutions is better",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("both", "judge"))
  c = domains.judge(size, "verdict")
  if kind == "both":
    c.prompts.mixture = dict(
        judged=dict(source="judging:FILE", dataset="judging", columns=dict(form="verdict")),
        solved=dict(source="ROWS.jsonl", dataset="jsonl", eval_split="", columns=dict(
            verifier="math_answer.final")))
  return c
