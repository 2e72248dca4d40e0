"""ReasonFlux-PRM: Trajectory-Aware PRMs for Long Chain-of-Thought Reasoning in LLMs
(arXiv:2506.18896). The reward of a completion is the mean score of its steps, with a weight of
0.75, plus the verdict, with a weight of 0.25.

  rlx train papers/reasonflux workdir=DIR
  rlx train papers/reasonflux:smoke workdir=DIR
  rlx train_scorer papers/implicit_prm workdir=PRM train_scorer.labels=soft \\
      train_scorer.add_outcome=true
  rlx train papers/reasonflux:scorer workdir=DIR scorers.trained.path=PRM/scorer

The variant :scorer takes the scores of steps, at their ends, and of the whole trajectory, at its
end, from one trained model, such as that of the third command; both as probabilities. The PRM's
score is their sum.

Letters beside the values: C taken from the released code (Gen-Verse/ReasonFlux), O our choice.

Differences from the paper: its labels of steps are those of a thought, by its agreement with the
final answer and by a judge, and its labels of trajectories are those of a template; here both are
what the rows have, or Monte Carlo values and verdicts. That both parts of the score weigh the same
is ours. Without :scorer this config uses the exact checker's scores of steps alone.

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
    c.verifier.scores = base.scored_by(c, kind, gives="probability", models=1)
    c.verifier.steps, = c.verifier.scores
    c.rewards.trajectory = dict(name="outcome.score", coef=0.75)  # C the weight of the PRM
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)
  return c
