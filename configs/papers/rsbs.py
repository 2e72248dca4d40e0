"""Let's Reinforce Step by Step (arXiv:2311.05821).

A process reward model scores every step of a completion, and PPO is trained on the product of
these scores.

  rlx train papers/rsbs workdir=DIR
  rlx train papers/rsbs:smoke workdir=DIR
  rlx train papers/rsbs:scorer scorers.trained.path=SCORER workdir=DIR

The variant :scorer takes the scores of steps from a trained model with a head instead, as
probabilities, such as <workdir>/scorer of `rlx train_scorer` with labels of steps.

Letters beside the values: O our choice; the product of the scores is written from memory of
the paper. `kind` is prod, min, mean or max. Differences from the paper: its step scores come
from a trained PRM; this config takes them from the exact checker of chains.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "how scores are aggregated decides what is learned",
    "process rewards help on simple problems and hurt on hard ones",
)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.ppo(size, lam=1.0)  # O: the value model has the policy's learning rate.
  c.verifier.steps, = base.scored_by(c, kind, "checker of steps", gives="probability")  # O
  c.rewards = dict(process=dict(name="steps.completion", coef=1.0, kind="prod"))
  return c
