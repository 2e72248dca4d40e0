"""Helping or Herding? Reward Model Ensembles Mitigate but do not Eliminate Reward
Hacking (arXiv:2312.09244): the mean of an ensemble's scores less their standard
deviation.

  python -m rlx.train --config=configs/papers/herding.py --workdir=DIR
  python -m rlx.train --config=configs/papers/herding.py:smoke --workdir=DIR

P (paper) the kinds (mean, median, min, mean_minus_std), unchecked; O (ours) all
else. Five reward models of different pretraining seeds are here two verifiers that
judge different things. Others: --config.rewards.outcome.kind=median
"""
from configs import quickstart

PAPER = dict(
    title="Helping or Herding? Reward Model Ensembles Mitigate but do not Eliminate "
          "Reward Hacking",
    arxiv="2312.09244",
    claims=(
        "ensembles of different pretraining seeds help more than of different fine-tuning "
        "seeds",
        "errors that all members share are still hacked",
    ),
    confidence="medium")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.verifier.scores = ("chain.answer", "chain.step_share")  # for reward models
  c.rewards = dict(outcome=dict(name="shaping.ensemble", coef=1.0, kind="mean_minus_std"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  c.advantages = dict(total=dict(name="temporal.gae", gamma=1.0, lam=0.95),  # O
                      whiten=True)                # O
  c.value.optimizer.lr = 5e-4                     # O as the policy's
  c.rollouts.keep = dict(name="keep.everything")  # RLHF asks no verdict
  return c
