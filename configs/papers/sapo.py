"""Soft Adaptive Policy Optimization (arXiv:2511.20347): a smooth gate in place
of the clip, steeper for failures.

  python -m rlx.train --config=configs/papers/sapo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/sapo.py:smoke --workdir=DIR

P the paper, O ours.
"""
from configs import quickstart

PAPER = dict(
    title="Soft Adaptive Policy Optimization",
    arxiv="2511.20347",
    claims=(
        "more stable and at equal budget more accurate than GSPO and GRPO",),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.learner.loss = dict(name="policy.sapo", tau_pos=1.0, tau_neg=1.05)  # P
  c.learner.aggregation = "seq-mean-token-mean"  # P
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
