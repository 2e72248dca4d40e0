"""Skywork-Reward: Bag of Tricks for Reward Modeling in LLMs (arXiv:2410.18451): a reward model
learns few pairs, those of the highest scores by another reward model, with plain Bradley-Terry.

  rlx train_scorer papers/skywork_reward train_scorer.rollouts=PAIRS.jsonl workdir=DIR
  rlx train_scorer papers/skywork_reward:selected train_scorer.rollouts=PAIRS.jsonl workdir=DIR \\
      scorers.trained.path=SCORER
  rlx train_scorer papers/skywork_reward:smoke workdir=DIR

The variant :selected keeps the 30% of the pairs whose completions have the highest scores
(train_scorer.curate.share), as the paper does for mathematics and code; its share for other tasks
is 10%, and a file is one task. The losses that it compares with are reward_model.focal, .hinge and
.squared_margin (train_scorer.loss.name), and .bradley_terry with margins (train_scorer.margins).

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: which of
the two scores of a pair decides is not stated in the sources at hand, here their mean; that pairs
of certain models are preferred, and the filter of safety, are not here.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "Bradley-Terry is better than focal, hinge and squared losses",
    "few pairs that are selected train a better reward model than many",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("plain", "selected"))
  c = implicit_prm.get_config(size)
  c.train_scorer.labels = "outcome"                                         # P
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")             # P
  if kind == "selected":
    c.verifier.scores = base.scored_by(c, "scorer", models=1)               # P
    c.train_scorer.curate = dict(name="preferences.keep_best", share=0.3)   # P
  return c
