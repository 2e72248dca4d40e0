"""Chasing the Tail: Effective Rubric-based Reward Modeling for Large Language Model Post-Training
(arXiv:2509.21500). The reward is the weighted share of the items of a rubric that a completion
meets, and the rubric is refined by items that tell the best responses apart, since errors among
these are what a policy exploits.

  rlx write base task=rubric rows=FILE to=RUBRICS verifier.judge.url=URL verifier.judge.model=NAME
  rlx write base task=contrast rows=RUBRICS completions=GRADED to=REFINED \
      verifier.judge.url=URL verifier.judge.model=NAME
  rlx train papers/rubric_tail:judge base=gsm8k prompts.source=REFINED prompts.dataset=jsonl \
      model.path=MODEL verifier.judge.url=URL verifier.judge.model=NAME
  rlx train papers/rubric_tail workdir=DIR
  rlx train papers/rubric_tail:smoke workdir=DIR

GRADED has diverse responses with verdicts, such as those of several strong models; a second
`contrast` over REFINED and what it graded refines the rubric once more. Without the variant :judge
verifiers check the rubric of the base. How often a reward misranks the best responses says
`rlx.evals.reward_model.tail_error`.

Letters beside the values: P stated in the paper, O our choice (the words of the requests, and what
else is not marked). Differences from the paper: its rounds of refinement and its number of
responses are not known to us.

Confidence in the formula: low.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "rubrics that tell great responses apart lead to better policies than others",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("verifiers", "judge"))
  c = quickstart.grpo(size)  # O: no filter by accuracy, because the verdict is no reward.
  base.use_rubric(c, is_judged=kind == "judge")
  c.rewards = dict(outcome=dict(name="items.weighted", coef=1.0, kind="mean"))                # P
  return c
