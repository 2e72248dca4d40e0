"""Secrets of RLHF in Large Language Models Part II: Reward Modeling (arXiv:2401.06080): an ensemble
of reward models says how strong each preference is; the weakest labels are turned round, and all
are as soft as their strength says.

  rlx train_scorer papers/secrets_rm train_scorer.rollouts=PAIRS.jsonl seed=1 workdir=A
  rlx train_scorer papers/secrets_rm:denoised train_scorer.rollouts=PAIRS.jsonl workdir=DIR \\
      scorers.trained1.path=A/scorer ... scorers.trained10.path=J/scorer
  rlx train_scorer papers/secrets_rm:smoke workdir=DIR

The first command trains a member of the ensemble, the second one the reward model from the
strengths of ten members; it writes the pairs that it learns to <workdir>/curated.jsonl.
train_scorer.loss.name=reward_model.bradley_terry train_scorer.margins=true subtracts the strength
as a margin instead, train_scorer.loss.smoothing=0.1 smooths labels. Both commands contrast the
differences of pairs in the model's features (`contrast_pairs`); train_scorer.auxiliary.coef=0
leaves this out.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: what
differs between the two draws of a difference is a dropout of the features alone; SimCSE is one of
the two kinds of contrast that the paper tries.

Confidence in the formula: medium.
"""
from rlx.configs import base
from rlx.configs.papers import implicit_prm

CLAIMS = (
    "turning the weakest labels round and softening them trains a better reward model than all "
    "labels as they are",
    "PPO with it is more stable",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("member", "denoised"))
  c = implicit_prm.get_config(size)
  c.train_scorer.labels = "outcome"                                         # P
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")             # P
  c.train_scorer.auxiliary = dict(name="reward_model.contrast_pairs", coef=0.1)  # P, O the weight
  if kind == "denoised":
    c.verifier.scores = base.scored_by(c, "scorer", models=10)              # P
    c.train_scorer.curate = dict(name="preferences.swap_weakest", share=0.1)  # P: 10% to 20%
    c.train_scorer.loss = dict(name="reward_model.soft_bradley_terry")      # P
  return c
