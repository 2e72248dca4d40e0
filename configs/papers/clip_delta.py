"""On Designing Effective RL Reward at Training Time for LLM Reasoning (arXiv:2410.15115).
The scores of steps are clipped at 0 and replaced by the differences of successive scores,
so that a completion cannot collect more reward by having more steps.

  rlx train papers/clip_delta workdir=DIR
  rlx train papers/clip_delta:smoke workdir=DIR
  rlx train papers/clip_delta:scorer scorers.trained.path=SCORER workdir=DIR

The variant :scorer takes the scores of steps from a trained model with a head instead, as
probabilities, such as <workdir>/scorer of `rlx train_scorer` with labels of steps.

Letters beside the values: M from memory of the paper, O our choice.

Differences from the paper: the paper scores steps with a trained PRM, this config with an
exact checker.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "a PRM's rewards, added as they are, pay for repeated steps and cost accuracy",
    "clip and delta bound the return and do better than success alone",
)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.ppo(size, lam=1.0)  # M: PPO. O: the value model's learning rate.
  c.verifier.steps, = base.scored_by(c, kind, "checker of steps", gives="probability")  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="steps.refine", coef=0.02,         # M
                   kind="clip_delta", eta=0.5))  # O: only wrong steps are below it
  return c
