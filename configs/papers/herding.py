"""Helping or Herding? Reward Model Ensembles Mitigate but do not Eliminate Reward
Hacking (arXiv:2312.09244): the mean of an ensemble's scores less their standard
deviation.

  rlx train papers/herding workdir=DIR
  rlx train papers/herding:smoke workdir=DIR

P (paper) the kinds (mean, median, min, mean_minus_std), unchecked; O (ours) all
else. Five reward models of different pretraining seeds are here two verifiers that
judge different things. Others: rewards.outcome.kind=median

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "ensembles of different pretraining seeds help more than of different fine-tuning seeds",
    "errors that all members share are still hacked",
)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # O. No filter by accuracy: RLHF has no verdict.
  c.verifier.scores = ("chain.answer", "chain.step_share")  # for reward models
  c.rewards = dict(outcome=dict(name="shaping.ensemble", coef=1.0, kind="mean_minus_std"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  return c
