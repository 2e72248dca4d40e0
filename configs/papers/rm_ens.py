"""Reward Model Ensembles Help Mitigate Overoptimization (arXiv:2310.02743): the mean
of an ensemble's scores less a multiple of their variance (UWO).

  rlx train papers/rm_ens workdir=DIR
  rlx train papers/rm_ens:smoke workdir=DIR

P (paper) the variance's factor and KL, unchecked; C (code) tlc4418/llm_optimization
for the formulas; O (ours) the rest of PPO. Five reward models of different seeds
are here two verifiers that judge different things. WCO:
rewards.outcome.kind=min

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("WCO and UWO reduce overoptimization in PPO; with a small KL penalty there is none",)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # O. No filter by accuracy: RLHF has no verdict.
  c.verifier.scores = ("chain.answer", "chain.step_share")  # for reward models
  # Its variance counts 0.1 times (P for PPO), the function's default.
  c.rewards = dict(outcome=dict(name="shaping.ensemble", coef=1.0, kind="uwo"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # P the small one
  return c
