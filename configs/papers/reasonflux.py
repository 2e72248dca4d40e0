"""ReasonFlux-PRM: Trajectory-Aware PRMs for Long Chain-of-Thought Reasoning in
LLMs (arXiv:2506.18896): the mean score of the steps and the verdict, three
to one.

  rlx train papers/reasonflux workdir=DIR
  rlx train papers/reasonflux:smoke workdir=DIR

C the released code (Gen-Verse/ReasonFlux), O ours. The scores of steps are the
exact checker's, there a trained PRM's, which scores the trajectory too.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("the blend does better than GRPO with verdicts alone",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=0.25),     # C
      process=dict(name="steps.completion", coef=0.75, kind="mean"))  # C
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)
  return c
