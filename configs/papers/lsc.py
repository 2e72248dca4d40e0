"""Transforming and Combining Rewards for Aligning Large Language Models
(arXiv:2402.00742): log-sigmoids of centred scores, added: little is gained where a
score is good.

  python -m rlx.train --config=configs/papers/lsc.py --workdir=DIR
  python -m rlx.train --config=configs/papers/lsc.py:smoke --workdir=DIR

P (paper) the transform and its sum; O (ours) k, the thresholds, KL and PPO's
numbers. Its reward models (helpful, harmless) are here the answer and the share of
right steps, its centre, the 85% quantile of the start's scores, is 1 as soon as 15%
of the completions are right.
"""
from configs import quickstart

PAPER = dict(
    title="Transforming and Combining Rewards for Aligning Large Language Models",
    arxiv="2402.00742",
    claims=(
        "less hacking than the raw reward at the same KL",
        "the sum of transformed rewards beats the weighted sum of raw ones",
    ),
    confidence="medium")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.verifier.scores = ("chain.answer", "chain.step_share")  # for reward models
  c.rewards = dict(outcome=dict(
      name="shaping.ensemble", coef=1.0, kind="logsig_sum", k=4.0, thresholds=(1.0, 1.0)))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  c.advantages = dict(total=dict(name="temporal.gae", gamma=1.0, lam=0.95),  # O
                      whiten=True)                # O
  c.value.optimizer.lr = 5e-4                     # O as the policy's
  c.rollouts.keep = dict(name="keep.everything")  # RLHF asks no verdict
  return c
