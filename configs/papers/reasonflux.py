"""ReasonFlux-PRM: Trajectory-Aware PRMs for Long Chain-of-Thought Reasoning in
LLMs (arXiv:2506.18896). The reward of a completion is the mean score of its steps, with a
weight of 0.75, plus the verdict, with a weight of 0.25.

  rlx train papers/reasonflux workdir=DIR
  rlx train papers/reasonflux:smoke workdir=DIR

Letters beside the values: C taken from the released code (Gen-Verse/ReasonFlux), O our
choice.

Differences from the paper: The paper trains a PRM, which scores the steps and also the
whole trajectory. This config uses the exact checker's scores of steps.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("the blend does better than GRPO with verdicts alone",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = base.part("checker of steps")  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=0.25),     # C
      process=dict(name="steps.completion", coef=0.75, kind="mean"))  # C
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)
  return c
