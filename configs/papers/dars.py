"""Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration
(arXiv:2508.13755). A first pass samples a few completions for each prompt, and a second
pass samples more completions for hard prompts.

  rlx train papers/dars workdir=DIR
  rlx train papers/dars:smoke workdir=DIR

Letters beside the values: C taken from the released code (yangzhch6/DARS), O our choice.

Differences from the paper: the paper makes one update of two passes over 3072 prompts;
this config uses the quickstart's prompts and learning rate.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("more completions for hard prompts raise pass@k at equal tokens",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.rollouts.per_prompt = 8 if arg == "smoke" else 32                     # C: at most
  c.rollouts.budget = dict(
      name="budget.dars", first=2 if arg == "smoke" else 8,               # C
      schedule="equal", divides_by_std=False)                             # C
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)  # C
  c.advantages.outcome = dict(name="group.mean_baseline")  # C
  c.learner.aggregation = "seq-mean-token-sum-norm"                       # O: of these advantages
  c.learner.epochs = 2                                                    # C
  return c
