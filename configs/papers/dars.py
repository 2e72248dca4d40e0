"""Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive Exploration
(arXiv:2508.13755): a first look at each prompt, then more completions for hard ones.

  python -m rlx.train --config=configs/papers/dars.py --workdir=DIR
  python -m rlx.train --config=configs/papers/dars.py:smoke --workdir=DIR

C (code) yangzhch6/DARS; O (ours): the quickstart's prompts and learning rate, there one
update of 3072 prompts, two passes.
"""
from configs import quickstart

PAPER = dict(
    title="Depth-Breadth Synergy in RLVR: Unlocking LLM Reasoning Gains with Adaptive "
          "Exploration",
    arxiv="2508.13755",
    claims=(
        "more completions for hard prompts raise pass@k at equal tokens",
    ),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.per_prompt = 8 if arg == "smoke" else 32                     # C: at most
  c.rollouts.budget = dict(
      name="budget.dars", first=2 if arg == "smoke" else 8,               # C
      schedule="equal", divides_by_std=False)                             # C
  c.rollouts.keep = dict(name="keep.accuracy_band", low=1e-3, high=1 - 1e-3)  # C
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.mean_baseline"), whiten=False)  # C
  c.learner.aggregation = "seq-mean-token-sum-norm"                       # O: of those advantages
  c.learner.epochs = 2                                                    # C
  return c
