"""ReasonFlux-PRM: Trajectory-Aware PRMs for Long Chain-of-Thought Reasoning in
LLMs (arXiv:2506.18896). The reward of a completion is the mean score of its steps, with a
weight of 0.75, plus the verdict, with a weight of 0.25.

  rlx train papers/reasonflux workdir=DIR
  rlx train papers/reasonflux:smoke workdir=DIR
  rlx train papers/reasonflux:scorer workdir=DIR scorers.trained1.path=STEPS \\
      scorers.trained2.path=WHOLE

The variant :scorer takes the scores of steps from a trained model with a head instead, such as
<workdir>/scorer of `rlx train_scorer` with labels of steps, and the score of the whole trajectory
from a second one, trained with train_scorer.labels=outcome; both as probabilities. The PRM's score
is their sum.

Letters beside the values: C taken from the released code (Gen-Verse/ReasonFlux), O our
choice.

Differences from the paper: The paper trains a PRM, which scores the steps and also the
whole trajectory. This config uses the exact checker's scores of steps alone, or with :scorer
two models; that both parts of its score weigh the same is ours.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("the blend does better than GRPO with verdicts alone",)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.grpo(size)
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=0.25),     # C
      process=dict(name="steps.completion", coef=0.75, kind="mean"))  # C
  if kind == "checked": c.verifier.steps = base.part("checker of steps")  # O
  else:
    c.verifier.steps, whole = base.scored_by(c, kind, gives="probability", models=2)
    c.verifier.scores = (whole,)
    c.rewards.trajectory = dict(name="outcome.score", coef=0.75)  # C the weight of the PRM
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)
  return c
