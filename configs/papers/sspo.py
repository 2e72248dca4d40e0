"""SSPO: Subsentence-level Policy Optimization (arXiv:2511.04256): the ratio and
its clip are of a sentence.

  python -m rlx.train --config=configs/papers/sspo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/sspo.py:smoke --workdir=DIR

P the paper's abstract, O ours: a fixed range between those of GSPO and GRPO,
there it widens with entropy. A step of a chain is a sentence.
"""
from configs import quickstart

PAPER = dict(
    title="SSPO: Subsentence-level Policy Optimization",
    arxiv="2511.04256",
    claims=("clips fewer tokens than GSPO and is as stable",),
    confidence="low")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.learner.loss = dict(name="sequence.sspo", clip_low=0.02,
                        clip_high=0.02)  # O
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
