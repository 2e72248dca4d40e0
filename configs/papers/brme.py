"""Reward-Robust RLHF in LLMs (arXiv:2409.15360). The reward is a weighted sum, with
weights lambda and 1 - lambda, of a nominal score and of the worst score of an ensemble. The nominal
score is that of the head that predicts the least spread.

  rlx train papers/brme workdir=DIR
  rlx train papers/brme:smoke workdir=DIR
  rlx train_scorer papers/implicit_prm workdir=A train_scorer.labels=outcome \\
      train_scorer.head=spread train_scorer.loss.name=reward_model.gaussian
  rlx train papers/brme:scorer workdir=DIR scorers.trained1.path=A/scorer \\
      scorers.trained2.path=B/scorer scorers.trained3.path=C/scorer \\
      scorers.trained4.path=D/scorer scorers.trained5.path=E/scorer

The variant :scorer takes mean and spread of five trained models with a head for both, such as those
of the third command with five values of seed.

Letters beside the values: P stated in the paper (lambda between 0.4 and 0.6, not verified
against the paper's text), O our choice (all others).

Differences from the paper: the paper's ensemble has five heads on one model, :scorer has five
models. Without :scorer two verifiers stand in for them, and the nominal score is the share of right
steps.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("training stays stable for longer than with a single reward model",)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.ppo(size)  # O. There is no filter by accuracy: RLHF has no verdict.
  # In place of the heads.
  c.verifier.scores = base.scored_by(c, kind, "graded verifier", "verifier of answers", models=5)
  if kind == "scorer": c.rewards = dict(robust=dict(name="shaping.nominal", coef=1.0, weight=0.5))
  else:
    c.rewards = dict(                               # P lambda and 1 - lambda
        nominal=dict(name="shaping.plain", coef=0.5, kind="linear"),
        worst=dict(name="shaping.ensemble", coef=0.5, kind="min"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  return c
