"""MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning Attention
(arXiv:2506.13585): CISPO, REINFORCE with a clipped weight, where every token
keeps its gradient.

  python -m rlx.train --config=configs/papers/cispo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/cispo.py:smoke --workdir=DIR

P the paper and verl, O ours: the upper bound, which it tunes and does not state.
"""
from configs import quickstart

PAPER = dict(
    title="MiniMax-M1: Scaling Test-Time Compute Efficiently with Lightning "
          "Attention",
    arxiv="2506.13585",
    claims=("reaches DAPO's accuracy in half of the steps",),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  # P: of DAPO
  c.rollouts.keep = dict(name="keep.accuracy_band", low=1e-3, high=1 - 1e-3)
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  # P: no lower bound
  c.learner.loss = dict(name="policy.cispo", clip_low=None, clip_high=0.28)
  c.learner.aggregation = "token-mean"  # P
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
