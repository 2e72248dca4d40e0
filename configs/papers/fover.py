"""Training Step-Level Reasoning Verifiers with Formal Verification Tools (arXiv:2505.15960),
called FoVer: a PRM learns labels of steps that a formal checker gave, without people and without
sampling, and is used on other tasks.

  rlx train_scorer papers/fover train_scorer.rollouts=ROWS.jsonl workdir=DIR
  rlx train_scorer papers/fover:smoke workdir=DIR

A row of the file has the checker's labels of its steps in the column `values`, 1 for a right step
and 0 for a wrong one (rlx/loops/stored_rows.py):

  {"question": "...", "completion": "STEP\\nSTEP", "verdict": 0, "values": [1, 0]}

Where no file is named, completions of the policy are sampled, and the base's exact checker of steps
labels them. Without such a checker, rows without the column get Monte Carlo labels. The score of a
completion is that of its worst step (`min` of `rlx evaluate`).

Letters beside the values: C taken from the released code (psunlpgroup/FoVer), the worst step; O our
choice. Differences from the paper: it fine-tunes the model to say `correct` or `incorrect` of each
step, here the PRM has a head. The checker is the one of the base's own task, as are the chains of
the toy; labels of Z3 and Isabelle are made elsewhere and read from a file.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "trained on logic and theorem proving, it verifies steps of other tasks better than the model "
    "that it starts from",
)


def get_config(arg=""):
  c = implicit_prm.get_config(arg)
  c.train_scorer.labels = "hard"                                            # P
  if checker := base.part("checker of steps", None):
    c.verifier.steps, c.train_scorer.labelled_by = checker, "verifier"      # P
  return c
