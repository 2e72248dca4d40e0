"""Energy-Based Reward Models for Robust Language Model Alignment (arXiv:2504.13134). An energy of a
score and of the features of a frozen reward model is high where the score suits them; ascent on it
corrects the score.

  rlx train_scorer papers/ebrm train_scorer.rollouts=PAIRS.jsonl workdir=DIR
  rlx train_scorer papers/ebrm prm.path=REWARD_MODEL steps=0 train_scorer.rollouts=PAIRS.jsonl \\
      workdir=DIR
  rlx train papers/ebrm:rl scorers.trained.path=DIR/scorer workdir=RUN
  rlx train_scorer papers/ebrm:smoke workdir=DIR

The first command trains a reward model by Bradley-Terry and then the energy; with the second a
reward model with a head is given, as in the paper. The energy learns scores and features of both
completions of the pairs that the reward model ranks right. It is DIR/scorer/energy.npz.
`rlx evaluate scorer=trained rows=ROWS` on a config with this scorer measures corrected scores.

Letters beside the values: P stated in the paper, C its released code (AnamikaLochab/EBRM), O our
choice. Differences from the paper: the scale of the noise, train_scorer.energy.stds, has the unit
of the score and fits no reward model but that of the code; the reward model and policy are small.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart
from rlx.configs.papers import implicit_prm

CLAIMS = ("corrected scores rank new pairs better", "the policy hacks the reward model later")


def get_config(arg=""):
  kind, size = base.variant(arg, ("scorer", "rl"))
  if kind == "rl":
    c = quickstart.ppo(size)  # P: PPO. There is no filter by accuracy: RLHF has no verdict.
    c.verifier.scores = base.scored_by(c, "scorer", models=1, gives="energy")  # P
    c.rewards = dict(outcome=dict(name="outcome.score", coef=1.0))             # P
    return c
  c = implicit_prm.get_config(size)
  c.train_scorer.labels = "outcome"                                            # P
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")                # P
  c.train_scorer.energy.steps = 1000                                           # O
  c.train_scorer.energy.negatives, c.train_scorer.energy.beta = 10, 0.1        # C
  return c
