"""On-Policy RL with Optimal Reward Baseline (arXiv:2505.23585): exactly
on-policy, against the mean weighted by length.

  python -m rlx.train --config=configs/papers/opo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/opo.py:smoke --workdir=DIR

P the paper, O ours.
"""
from configs import quickstart

PAPER = dict(
    title="On-Policy RL with Optimal Reward Baseline",
    arxiv="2505.23585",
    claims=("entropy stays higher than GRPO's, without KL or entropy terms",),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.opo"), whiten=False)  # P
  c.learner.loss = dict(name="policy.reinforce")
  c.learner.minibatches, c.learner.epochs = 1, 1  # P: exactly on-policy
  c.learner.aggregation = "seq-mean-token-sum"  # O
  return c
