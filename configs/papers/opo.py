"""On-Policy RL with Optimal Reward Baseline (arXiv:2505.23585): exactly on-policy REINFORCE
whose baseline is the mean reward of the group, weighted by the lengths of the completions.

  rlx train papers/opo workdir=DIR
  rlx train papers/opo:smoke workdir=DIR

Letters beside the values: P stated in the paper, O our choice.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("entropy stays higher than GRPO's, without KL or entropy terms",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages.outcome = dict(name="group.opo")  # P
  c.learner.loss = dict(name="policy.reinforce")
  c.learner.minibatches, c.learner.epochs = 1, 1  # P: exactly on-policy
  c.learner.aggregation = "seq-mean-token-sum"  # O
  return c
