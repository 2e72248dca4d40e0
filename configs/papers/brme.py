"""Reward-Robust RLHF in LLMs (arXiv:2409.15360): the nominal score mixed with the
worst of the ensemble.

  python -m rlx.train --config=configs/papers/brme.py --workdir=DIR
  python -m rlx.train --config=configs/papers/brme.py:smoke --workdir=DIR

P (paper) lambda within 0.4 to 0.6, unchecked; O (ours) all else. Five heads that
know their own spread are here two verifiers, the nominal one the share of right
steps.
"""
from configs import quickstart

PAPER = dict(
    title="Reward-Robust RLHF in LLMs",
    arxiv="2409.15360",
    claims=(
        "training stays stable for longer than with a single reward model",
    ),
    confidence="medium")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.verifier.scores = ("chain.step_share", "chain.answer")  # stand in for the heads
  c.rewards = dict(                               # P lambda and 1 - lambda
      nominal=dict(name="shaping.plain", coef=0.5, kind="linear"),
      worst=dict(name="shaping.ensemble", coef=0.5, kind="min"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  c.advantages = dict(total=dict(name="temporal.gae", gamma=1.0, lam=0.95),  # O
                      whiten=True)                # O
  c.value.optimizer.lr = 5e-4                     # O as the policy's
  c.rollouts.keep = dict(name="keep.everything")  # RLHF asks no verdict
  return c
