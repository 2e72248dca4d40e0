"""Helping or Herding? Reward Model Ensembles Mitigate but do not Eliminate Reward
Hacking (arXiv:2312.09244): the reward is the mean of the scores of several reward models
minus the standard deviation of these scores.

  rlx train papers/herding workdir=DIR
  rlx train papers/herding:smoke workdir=DIR
  rlx train papers/herding:scorer workdir=DIR scorers.trained1.path=A scorers.trained2.path=B \\
      scorers.trained3.path=C scorers.trained4.path=D scorers.trained5.path=E

The variant :scorer takes the scores from five trained models with a head instead, such as
<workdir>/scorer of `rlx train_scorer` from five pretrained models.

Letters beside the values: O our choice. The ways to combine the scores (mean, median, min,
mean_minus_std) come from the paper, but are not verified against its text; all other values
are our choice. Set rewards.outcome.kind=median for another way. Differences from the paper:
the paper uses five reward models with different pretraining seeds; this config uses two
verifiers that check different properties, or with :scorer five models, which the user trains.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "ensembles of different pretraining seeds help more than of different fine-tuning seeds",
    "errors that all members share are still hacked",
)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.ppo(size)  # O; no filter by accuracy, because RLHF has no verdict
  # They stand in for reward models.
  c.verifier.scores = base.scored_by(c, kind, "verifier of answers", "graded verifier", models=5)
  c.rewards = dict(outcome=dict(name="shaping.ensemble", coef=1.0, kind="mean_minus_std"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  return c
