"""The Lessons of Developing Process Reward Models in Mathematical Reasoning (arXiv:2501.07301): a
PRM learns Monte Carlo labels of the steps of those completions alone of which a judge names the
same first wrong step.

  rlx train_scorer papers/prm_lessons workdir=DIR
  rlx train_scorer papers/prm_lessons:smoke workdir=DIR
  rlx train_scorer papers/prm_lessons base=gsm8k model.path=MODEL verifier.judge.url=URL \\
      verifier.judge.model=NAME workdir=DIR

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
toy's judge is an exact checker.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.papers import implicit_prm

CLAIMS = ("labels on which Monte Carlo values and a judge agree, about 40% of the data, train a "
          "better PRM than the labels of either",
          "PRMs trained on Monte Carlo labels score outcomes rather than steps")


def get_config(arg=""):
  c = implicit_prm.get_config(arg)
  base.use_judge(c)
  c.verifier.steps = "judge.steps"                                        # P
  c.train_scorer.labels, c.train_scorer.labelled_by = "hard", "consensus"      # P
  return c
