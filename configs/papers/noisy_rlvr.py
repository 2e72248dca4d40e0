"""Reinforcement Learning with Verifiable yet Noisy Rewards under Imperfect Verifiers
(arXiv:2510.00915): a noisy verifier's verdicts, corrected by its error rates.

  rlx train papers/noisy_rlvr workdir=DIR
  rlx train papers/noisy_rlvr:smoke workdir=DIR

P (paper) formulas of both corrections; O (ours) the rates 0.1 and 0.2 and the
estimator. The paper hooks into GRPO; an estimator that centres would take both
corrections off again, so that here there is none. PGFC:
rewards.outcome.correction=forward

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "backward and forward corrections recover what training on clean verdicts reaches",
    "the forward correction is the more stable one under heavy noise",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: it would use the verdicts without noise.
  c.rewards.outcome = dict(
      name="noise.channel", coef=1.0, false_positive=0.1, false_negative=0.2,
      level="sample", correction="backward")  # P PGBC; told the true rates
  # No baseline and no whitening: both corrections are affine in the verdict.
  c.advantages.outcome = dict(name="batch.reinforce", use_mean=False)
  return c
