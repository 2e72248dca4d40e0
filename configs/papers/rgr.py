"""Reward and Guidance through Rubrics: Promoting Exploration to Improve Multi-Domain Reasoning
(arXiv:2511.12344). The reward is the weighted share of the criteria of a rubric that a completion
meets: criteria of fact, such as an intermediate result, and of process, such as a method.

  rlx train papers/rgr workdir=DIR
  rlx train papers/rgr:smoke workdir=DIR
  rlx train papers/rgr:judge base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME

A row with a column `items` has its own rubric, {"name", "text",
"weight"}, which `rlx write base task=rubric` lets a language model write; others have that of the
base, which has a criterion of fact, the answer, and two of form. In the variant :judge a judge
reads all criteria at once.

In the variant :guided a completion that was refined by the criteria that it does not meet joins the
group off-policy. A language model refines the best completion of an earlier run:

  rlx write base task=refine rows=RUBRICS completions=GRADED to=REFINED \
      verifier.judge.url=URL verifier.judge.model=NAME
  rlx train papers/rgr:guided base=gsm8k prompts.source=REFINED prompts.dataset=jsonl \
      "prompts.columns.meta=('items','demonstration')" model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: there a
completion of the present group is refined, and joins it where the others fail; here that of an
earlier run joins every group. Its weight off-policy is not known to us; here it is that of RL-PLUS.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: low.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "7.0% on mathematics, 5.4% on physics and 8.4% on chemistry above RL on verdicts",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("verifiers", "judge", "guided"))
  c = quickstart.grpo(size)  # P: GRPO. O: no filter by accuracy, because the verdict is no reward.
  base.use_rubric(c, is_judged=kind != "verifiers")
  # P: a criterion is met or not; O: from 1/2 on.
  c.rewards = dict(outcome=dict(name="items.weighted", coef=1.0, kind="mean", threshold=0.5))
  if kind == "guided":
    c.rollouts.demonstration = dict(name="jsonl.demonstration", column="demonstration")       # P
    c.advantages.outcome = dict(name="group.against_sampled")                                 # O
    c.learner.loss = dict(name="policy.rl_plus", focal_exponent=0.0)                          # O
  return c
