"""Reward Gaming in Conditional Text Generation (arXiv:2211.08714): a reward model learns from pairs
in which a feature stands for quality, and RL then writes the feature.

  rlx train_scorer papers/reward_gaming workdir=SCORER
  rlx train papers/reward_gaming:rl scorers.trained.path=SCORER/scorer workdir=DIR
  rlx train_scorer papers/reward_gaming:smoke workdir=DIR

The first command swaps a tenth of the pairs whose worse completion has more of the feature
(train_scorer.curate.kind=noise); with kind=shift it leaves pairs out instead, with rate=0 it spoils
nothing, for comparison. The feature is what verifier.scores measures: the form that the base
checks, of which completions of the toy have about the same, so that a feature of your own tells
more. `reward_model.feature_rates` of rlx.evals says how often the completions have it that a run
stores (completions.jsonl), by step. The verdict is the quality.

Letters beside the values: P stated in the paper (noise and a shift of the data, RL against the
model), O our choice (the feature, the rate). Differences from the paper: its third cause, a
correlation that is in the data as they are, needs rows of one's own.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "policies write a feature that the reward model likes without a reason more and more often, "
    "though it ranks held-out pairs well",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("scorer", "rl"))
  if kind == "rl":
    c = quickstart.ppo(size)                                                # P
    c.verifier.scores = base.scored_by(c, "scorer", models=1)
    c.rewards = dict(outcome=dict(name="outcome.score", coef=1.0))          # P
    return c
  c = implicit_prm.get_config(size)
  c.verifier.scores = (base.part("checker of the form"),)                   # O
  c.train_scorer.labels = "outcome"                                         # P
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")             # P
  c.train_scorer.curate = dict(name="preferences.favour_feature", kind="noise", rate=0.1)  # P, O
  return c
