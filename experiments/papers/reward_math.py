"""Evaluating Robustness of Reward Models for Mathematical Reasoning (arXiv:2410.01729).

Forty reward models score right completions 2 above wrong ones. They differ in their noise and
in the share of wrong completions whose score is 6 higher by mistake. One benchmark has 200
prompts with one right and nine wrong completions; the other has the same prompts with the
first wrong completion only. The rank correlation of each with the accuracy of best of 64 is
measured. No policy is trained.

Confidence in the formula: high.
"""
import numpy as np
from scipy import stats

from rlx.evals import best_of_n
from rlx.evals import reward_model

CLAIMS = ("accuracy on one right and nine wrong completions correlates with that of the optimised "
          "policy; accuracy on pairs does not",)
CLAIM = 0
MEASURE = ("rank correlation with best of 64 over reward models: one-to-many accuracy minus pair "
           "accuracy")
MARGIN, FIRST = 0.05, ("confirmed", None)
ILLUSTRATION = ("The reward models differ in how often they score a wrong completion too high, "
                "which nine wrong completions show more often than one.")
MODELS = 40


def effect(rng):
  rows, (gap, slipped) = [], rng.uniform(0.8, 1.2, 2) * (2, 6)
  right_PG = np.arange(10)[None] == np.zeros((200, 1))
  sampled_PG = rng.random((500, 64)) < 0.2
  for noise, slip in zip(rng.uniform(0.5, 2, MODELS), 10 ** rng.uniform(-4, -1, MODELS)):
    def score(right_PG):
      slips_PG = ~right_PG & (rng.random(right_PG.shape) < slip)
      return gap * right_PG + slipped * slips_PG + noise * rng.normal(size=right_PG.shape)
    score_PG = score(right_PG)
    rows.append((reward_model.one_to_many(score_PG, right_PG)["accuracy"],
                 reward_model.pair_accuracy(score_PG[:, 0], score_PG[:, 1]),
                 best_of_n.best_of_n(score(sampled_PG), 1.0 * sampled_PG)))
  many_N, pair_N, policy_N = zip(*rows)
  return stats.spearmanr(many_N, policy_N).statistic - stats.spearmanr(pair_N, policy_N).statistic


def effects(seeds):
  return {"pairs": [effect(np.random.default_rng(seed)) for seed in seeds]}
