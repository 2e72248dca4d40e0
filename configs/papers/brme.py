"""Reward-Robust RLHF in LLMs (arXiv:2409.15360). The reward is a weighted sum, with
weights lambda and 1 - lambda, of a nominal score and of the worst score of an ensemble.

  rlx train papers/brme workdir=DIR
  rlx train papers/brme:smoke workdir=DIR
  rlx train papers/brme:scorer workdir=DIR scorers.trained1.path=A scorers.trained2.path=B \\
      scorers.trained3.path=C scorers.trained4.path=D scorers.trained5.path=E

The variant :scorer takes the scores from five trained models with a head instead, such as
<workdir>/scorer of `rlx train_scorer` with five values of seed.

Letters beside the values: P stated in the paper (lambda between 0.4 and 0.6, not verified
against the paper's text), O our choice (all others).

Differences from the paper: the paper's ensemble has five heads that predict their own
spread, and the nominal score is that of the head with the least; this config uses two verifiers,
and the nominal score is the share of right steps. With :scorer it uses five models, which may
have a head with a spread (train_scorer.head=spread), whose mean is the score; the nominal score is
that of the first.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("training stays stable for longer than with a single reward model",)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.ppo(size)  # O. There is no filter by accuracy: RLHF has no verdict.
  # In place of the heads.
  c.verifier.scores = base.scored_by(c, kind, "graded verifier", "verifier of answers", models=5)
  c.rewards = dict(                               # P lambda and 1 - lambda
      nominal=dict(name="shaping.plain", coef=0.5, kind="linear"),
      worst=dict(name="shaping.ensemble", coef=0.5, kind="min"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  return c
