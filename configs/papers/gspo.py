"""Group Sequence Policy Optimization (arXiv:2507.18071): the ratio and its clip
are of the whole completion.

  python -m rlx.train --config=configs/papers/gspo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/gspo.py:smoke --workdir=DIR

P the paper (section 5.1), O ours. At the learning rate here ratios move
further than there, so more is clipped.
"""
from configs import quickstart

PAPER = dict(
    title="Group Sequence Policy Optimization",
    arxiv="2507.18071",
    claims=(
        "clips far more tokens than GRPO and learns faster",
        "mixture-of-experts models train without replayed routing"),
    confidence="high")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.learner.loss = dict(name="sequence.gspo", clip_low=3e-4,
                        clip_high=4e-4)  # P
  c.learner.aggregation = "seq-mean-token-mean"  # P
  c.learner.minibatches = 4  # P; on-policy the clip does nothing
  return c
