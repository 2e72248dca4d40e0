"""The Accuracy Paradox in RLHF: When Better Reward Models Don't Yield Better Language Models
(arXiv:2410.06554): RL against reward models of different accuracy, measured by a gold score.

  for steps in 5 20 80 320; do
    rlx train_scorer papers/implicit_prm steps=$steps workdir=rm/$steps train_scorer.labels=outcome \\
        train_scorer.loss.name=reward_model.bradley_terry
    rlx train papers/accuracy_paradox scorers.trained.path=rm/$steps/scorer workdir=rl/$steps
  done
  rlx train papers/accuracy_paradox:smoke scorers.trained.path=rm/5/scorer workdir=DIR

The accuracy of a reward model is pair/sum in the summary of its training; the gold score is the
held-out accuracy of the policy after RL, as verifiers say. `overoptimization.compare_scorers` of
rlx.evals says at which accuracy of the reward models the gold score is best.

Letters beside the values: P stated in the paper (PPO against reward models of one training that are
stopped early or late), O our choice. Differences from the paper: its gold score is that of other
reward models, for relevance, factuality and completeness.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("reward models of moderate accuracy train better policies than the most accurate ones",)


def get_config(arg=""):
  c = quickstart.ppo(arg)                                                   # P
  c.verifier.scores = base.scored_by(c, "scorer", models=1)
  c.rewards = dict(outcome=dict(name="outcome.score", coef=1.0))            # P
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"                   # O
  return c
