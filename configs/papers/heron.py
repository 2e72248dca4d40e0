"""Deep Reinforcement Learning from Hierarchical Weak Preference Feedback (arXiv:2309.02632). Two
completions are compared by factors in the order of their importance: the first one that differs
enough decides. The reward is how many of the prompt's other completions one beats, or the score of
a reward model that learns such comparisons.

  rlx train papers/heron workdir=DIR
  rlx train papers/heron:smoke workdir=DIR
  rlx train_scorer papers/heron:scorer workdir=SCORER
  rlx train papers/heron:rl scorers.trained.path=SCORER/scorer workdir=DIR

The last two commands are the paper's: a reward model learns the labels of pairs, and PPO its score.

Letters beside the values: P stated in the paper (the comparison, the reward model, PPO), O our
choice (the factors, which are scores of verifiers, and their thresholds). Differences from the
paper: without a variant the comparisons are the reward of GRPO, and nothing is learned; :scorer
learns one pair of each prompt, of a completion with the highest and one with the lowest verdict.
The paper's later title is Deep Reinforcement Learning from Hierarchical Preference Design.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart
from rlx.configs.papers import implicit_prm

CLAIMS = ("ranked factors do as well as tuned weights of the same factors, with less tuning",)
THRESHOLDS = (0.5, 0.1)  # O


def get_config(arg=""):
  kind, size = base.variant(arg, ("comparisons", "scorer", "rl"))
  factors = base.part("verifier of answers"), base.part("graded verifier")
  if kind == "rl":
    c = quickstart.ppo(size)                                                     # P
    c.verifier.scores = base.scored_by(c, "scorer", models=1)
    c.rewards = dict(outcome=dict(name="outcome.score", coef=1.0))               # P
    return c
  # O: no filter by accuracy, because the verdict is one of the factors.
  c = quickstart.grpo(size) if kind == "comparisons" else implicit_prm.get_config(size)
  c.verifier.scores = factors
  if kind == "comparisons":
    c.rewards = dict(outcome=dict(                                               # P, O thresholds
        name="shaping.hierarchical", coef=1.0, thresholds=THRESHOLDS))
    return c
  c.train_scorer.labels = "outcome"                                              # P
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")                  # P
  c.train_scorer.curate = dict(name="preferences.order_factors", thresholds=THRESHOLDS)  # P
  return c
