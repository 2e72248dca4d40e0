"""Reinforcement Learning with Verifiable yet Noisy Rewards under Imperfect Verifiers
(arXiv:2510.00915): the verdicts of a verifier that makes errors are corrected with its rates
of false positives and false negatives.

  rlx train papers/noisy_rlvr workdir=DIR
  rlx train papers/noisy_rlvr:smoke workdir=DIR

Letters beside the values: P stated in the paper, which gives the formulas of both corrections.
The rates 0.1 and 0.2 and the estimator are our choice. Differences from the paper: the paper
adds the corrections to GRPO; this config subtracts no baseline, because an estimator that
subtracts the mean would cancel both corrections. Set rewards.outcome.correction=forward for
PGFC, the forward correction; noise.appealed is PGFC with a rate that is estimated by the first
verifier in verifier.scores, as the paper does it with appeals.

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
      level="sample", correction="backward")  # P PGBC, with the true rates
  # No baseline and no whitening: both corrections are affine in the verdict.
  c.advantages.outcome = dict(name="batch.reinforce", use_mean=False)
  return c
