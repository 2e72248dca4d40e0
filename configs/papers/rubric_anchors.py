"""Reinforcement Learning with Rubric Anchors (arXiv:2508.12790). The reward is a weighted mean of
the scores of a rubric's items, in which each score saturates and a veto makes the whole 0.

  rlx train papers/rubric_anchors workdir=DIR
  rlx train papers/rubric_anchors:smoke workdir=DIR

The paper describes its aggregation in words: a veto by items that must not fail, such as one that
detects reward hacking; saturation, so that being excellent in one respect gains little; a
non-linear map that sets apart what is good; and interactions of pairs of items. This config has
the first three. The rubric is that of the base, whose last item is the veto.

Letters beside the values: P stated in the paper, O our choice, which covers level, slope and power.
Differences from the paper: verifiers judge the items instead of language models; there are no
interactions of items, for which the paper has neither a formula nor an example.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("veto, saturation and the map of scores reduce reward hacking",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # O: no filter by accuracy, because the verdict is no reward.
  *others, last = base.part("rubric")
  c.verifier.by_item = "items.verdicts"
  c.verifier.default_items = (*others, dict(last, veto=True))                     # P: a veto
  c.verifier.workers = max(c.verifier.workers, 1)
  c.rewards = dict(outcome=dict(
      name="items.weighted", coef=1.0, kind="mean", level=0.8, slope=0.25, power=2.0))  # O
  return c
