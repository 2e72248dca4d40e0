"""Transforming and Combining Rewards for Aligning Large Language Models
(arXiv:2402.00742): log-sigmoids of centred scores, added: little is gained where a
score is good.

  rlx train papers/lsc workdir=DIR
  rlx train papers/lsc:smoke workdir=DIR

P (paper) the transform and its sum; O (ours) k, the thresholds, KL and PPO's
numbers. Its reward models (helpful, harmless) are here the answer and the share of
right steps, its centre, the 85% quantile of the start's scores, is 1 as soon as 15%
of the completions are right.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "less hacking than the raw reward at the same KL",
    "the sum of transformed rewards beats the weighted sum of raw ones",
)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # O. No filter by accuracy: RLHF has no verdict.
  c.verifier.scores = ("chain.answer", "chain.step_share")  # for reward models
  c.rewards = dict(outcome=dict(
      name="shaping.ensemble", coef=1.0, kind="logsig_sum", k=4.0, thresholds=(1.0, 1.0)))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  return c
