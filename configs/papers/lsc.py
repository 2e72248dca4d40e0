"""Transforming and Combining Rewards for Aligning Large Language Models
(arXiv:2402.00742): the reward is the sum of the log-sigmoids of the centred scores of several
reward models, so that raising a score that is already good adds little.

  rlx train papers/lsc workdir=DIR
  rlx train papers/lsc:smoke workdir=DIR
  rlx train papers/lsc:scorer scorers.trained1.path=SCORER scorers.trained2.path=OTHER workdir=DIR

The variant :scorer takes the scores from two trained models with a head instead, such as
<workdir>/scorer of `rlx train_scorer`; rewards.outcome.thresholds=(a,b) are those of your models.

Letters beside the values: O our choice (k, the thresholds, the KL term and PPO's values). The
transform and the sum are stated in the paper. Differences from the paper: the paper uses
reward models for helpfulness and harmlessness; this config uses the answer's correctness and
the share of right steps. The paper centres a score at the 85% quantile of the initial policy's
scores; this quantile is 1 here as soon as 15% of the completions are right.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "less hacking than the raw reward at the same KL",
    "the sum of transformed rewards beats the weighted sum of raw ones",
)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.ppo(size)  # O; no filter by accuracy, because RLHF has no verdict
  # They stand in for reward models.
  c.verifier.scores = base.scored_by(c, kind, "verifier of answers", "graded verifier")
  # Scores of a head are log-odds, which are centred at 0.
  k, thresholds = dict(checked=(4.0, (1.0, 1.0)), scorer=(1.0, (0.0, 0.0)))[kind]
  c.rewards = dict(outcome=dict(
      name="shaping.ensemble", coef=1.0, kind="logsig_sum", k=k, thresholds=thresholds))
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"  # O
  return c
