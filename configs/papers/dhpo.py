"""Orchestrating Tokens and Sequences: Dynamic Hybrid Policy Optimization for
RLVR (arXiv:2601.05607): token and sequence ratio mixed, each clipped in its
own region.

  python -m rlx.train --config=configs/papers/dhpo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/dhpo.py:smoke --workdir=DIR

P the paper's abstract, O ours: the ranges, of DAPO and GSPO. mixing='entropy'
is its other variant.
"""
from configs import quickstart

PAPER = dict(
    title="Orchestrating Tokens and Sequences: Dynamic Hybrid Policy "
          "Optimization for RLVR",
    arxiv="2601.05607",
    claims=("does better than GRPO and GSPO",),
    confidence="low")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.learner.loss = dict(  # O
      name="sequence.dhpo", mixing="averaged", clip_low=0.2, clip_high=0.28,
      seq_clip_low=3e-4, seq_clip_high=4e-4)
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
