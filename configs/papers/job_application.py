"""Mathematical Framework for Custom Reward Functions in Job Application Evaluation using
Reinforcement Learning (arXiv:2511.16073).

The reward of a decision on an application is a weighted mean of its label, its form and the
evidence that it names; no term is below 0.

  rlx train papers/job_application workdir=DIR model.path=MODEL
  rlx train papers/job_application:smoke workdir=DIR model.path=MODEL

Letters beside the values: P stated in the paper (the terms, and that small ones without
penalties are stable), O our choice (the weights, the applications, which are made).
Differences from the paper: its supervised start is not here.

Confidence in the formula: medium.
"""
from rlx.configs.bases import domains

CLAIMS = (
    "large penalties end in rejecting every application, small terms do not",
)


def get_config(arg=""):
  weights = dict(label=1.0, format=0.2, evidence=0.5)                                         # O
  return domains.grpo(
      arg, "decisions", "Name what decides, then on a last line the label alone.", kinds=("job",),
      items=tuple(dict(name=name, weight=w) for name, w in weights.items()))
