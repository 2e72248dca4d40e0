"""Reward and Guidance through Rubrics: Promoting Exploration to Improve Multi-Domain Reasoning
(arXiv:2511.12344). The reward is the weighted share of the criteria of a rubric that a completion
meets: criteria of fact, such as an intermediate result, and of process, such as a method.

  rlx train papers/rgr workdir=DIR
  rlx train papers/rgr:smoke workdir=DIR
  rlx train papers/rgr:judge base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME

A row with a column `items` has its own rubric, {"name", "text",
"weight"}; others have that of the base, which has a criterion of fact, the answer, and two of form.
In the variant :judge a judge reads all criteria at once.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
reward alone is here. Its guidance, a refinement of the best completion by the criteria that it does
not meet, which joins the group where the others fail, is not; rubrics are written by a language
model for each question there.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: low.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "7.0% on mathematics, 5.4% on physics and 8.4% on chemistry above RL on verdicts",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("verifiers", "judge"))
  c = quickstart.grpo(size)  # P: GRPO. O: no filter by accuracy, because the verdict is no reward.
  c.verifier.workers = max(c.verifier.workers, 1)
  c.verifier.default_items = base.part("rubric")
  if kind == "judge": base.use_judge(c)
  c.verifier.by_item = dict(verifiers="items.verdicts", judge="judge.rubric")[kind]
  # P: a criterion is met or not; O: from 1/2 on.
  c.rewards = dict(outcome=dict(name="items.weighted", coef=1.0, kind="mean", threshold=0.5))
  return c
