"""Rubrics as Rewards: Reinforcement Learning Beyond Verifiable Domains (arXiv:2507.17746). The
reward is the weighted share of the items of a rubric that a completion meets.

  rlx train papers/rar workdir=DIR
  rlx train papers/rar:smoke workdir=DIR

This is the explicit form of the reward, sum_j w_j c_j / sum_j w_j, in which every item is judged
by itself. The rubric of the base stands for all prompts; rows with a column `items`
(prompts.columns.meta=items) have their own, {"name", "weight", "verifier"}, with the weights of the
categories: essential 1.0, important 0.7, optional 0.3, pitfall (stated as what is avoided) 0.9.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its
rubrics are written by a language model for each prompt, and one judges the items; here verifiers
do. The implicit form, in which the judge gives one number, is a judge's.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("items judged one by one do better than a rating of the whole on a Likert scale",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # P: GRPO. O: no filter by accuracy, because the verdict is no reward.
  c.verifier.by_item, c.verifier.default_items = "items.verdicts", base.part("rubric")
  c.verifier.workers = max(c.verifier.workers, 1)
  # P: an item is met or not; O: from 1/2 on.
  c.rewards = dict(outcome=dict(name="items.weighted", coef=1.0, kind="mean", threshold=0.5))
  return c
