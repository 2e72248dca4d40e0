"""GPG: A Simple and Strong Reinforcement Learning Baseline for Model Reasoning
(arXiv:2504.02546): the policy gradient of centred rewards, scaled up for
groups without signal.

  python -m rlx.train --config=configs/papers/gpg.py --workdir=DIR
  python -m rlx.train --config=configs/papers/gpg.py:smoke --workdir=DIR

P the paper, C verl's form (rewards that are not 0 are counted, there groups
with signal), O ours.
"""
from configs import quickstart

PAPER = dict(
    title="GPG: A Simple and Strong Reinforcement Learning Baseline for Model "
          "Reasoning",
    arxiv="2504.02546",
    claims=("does better than GRPO without clip, KL and reference",),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.gpg"), whiten=False)  # C
  c.learner.loss = dict(name="policy.reinforce")  # P
  c.learner.aggregation = "token-mean"  # O
  return c
