"""Reward Model Ensembles Help Mitigate Overoptimization (arXiv:2310.02743). The reward is the
mean of the scores of several reward models less a multiple of their variance (UWO).

  rlx train papers/rm_ens workdir=DIR
  rlx train papers/rm_ens:smoke workdir=DIR
  rlx train papers/rm_ens:scorer workdir=DIR scorers.trained1.path=A scorers.trained2.path=B \\
      scorers.trained3.path=C scorers.trained4.path=D scorers.trained5.path=E

The variant :scorer takes the scores from five trained models with a head instead, such as
<workdir>/scorer of `rlx train_scorer` with five values of seed.

Letters beside the values: P stated in the paper (the factor of the variance and the KL
coefficient, not verified against the paper's text), C taken from the released code
(tlc4418/llm_optimization, for the formulas), O our choice (the rest of PPO). The paper's
other rule, the minimum of the scores (WCO), is rewards.outcome.kind=min.

Differences from the paper: The paper has five reward models of different seeds. This config
has two verifiers that check different properties of a completion, or with :scorer five models,
which the user trains.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("WCO and UWO reduce overoptimization in PPO; with a small KL penalty there is none",)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  # O. Prompts are not filtered by accuracy, because RLHF has no verdicts.
  c = quickstart.ppo(size)
  # They stand in for reward models.
  c.verifier.scores = base.scored_by(c, kind, "verifier of answers", "graded verifier", models=5)
  # The factor of the variance is the function's default, 0.1 (P, for PPO).
  c.rewards = dict(outcome=dict(name="shaping.ensemble", coef=1.0, kind="uwo"))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # P: the small coefficient
  return c
