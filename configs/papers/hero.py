"""Hybrid Reinforcement: When Reward Is Sparse, It's Better to Be Dense
(arXiv:2510.07242): the reward is the verifier's verdict plus a small term, in which the score
of a reward model ranks the completions that have the same verdict. Prompts whose scores vary
more get larger advantages.

  rlx train papers/hero workdir=DIR
  rlx train papers/hero:smoke workdir=DIR
  rlx train papers/hero:scorer scorers.trained.path=SCORER workdir=DIR

The variant :scorer takes the score from a trained model with a head instead, such as
<workdir>/scorer of `rlx train_scorer`.

The formulas are stated in the paper (eq. 3 to 5). The values come from a re-implementation
of its table 6 on verifiable prompts (documentation of HERO in a fork of verl). Differences
from the paper: the paper scores completions with a reward model; this config uses the share
of right steps.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "beats verifier-only and reward-model-only training, most on answers that are hard to verify",
)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  c = quickstart.grpo(size)  # No filter by accuracy: scores also differ if all are right.
  # The graded verifier stands in for a reward model.
  c.verifier.scores = base.scored_by(c, kind, "graded verifier")
  c.rewards.outcome = dict(name="shaping.stratified", coef=1.0, 
                             wrong_range=0.05, right_range=0.05)
  c.advantages.outcome = dict(name="group.variance_weighted", low=0.4, high=3.0, k=6.0)
  # C ElegantLin/verl verl/trainer/config/actor/actor.yaml, which its re-implementation
  # (examples/hybrid_reward/run_train.sh) does not change.
  c.learner.aggregation = "token-mean"
  return c
