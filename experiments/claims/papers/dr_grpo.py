"""Simulates right completions that are rare at every length
(environments/sparse.py). The arms are Dr. GRPO's sum over tokens and the mean
over a completion's tokens, at learning rates tuned for the accuracy; the length of wrong
completions is compared. Dr. GRPO's constant is the mean length at the start, so that both
arms begin with steps of similar size. Neither arm divides by the standard deviation.
"""
import numpy as np

from configs.papers import dr_grpo
from experiments.claims.environments import sparse, tabular

MEASURE = ("length of wrong completions over 150 steps: mean over a completion's tokens minus Dr. "
           "GRPO")
MARGIN, RATE = 0.2, 30.0
FIRST = ("confirmed",
         "the length was that at the end of training, where there may be no wrong completions")


def arms():
  problem, c = sparse.endings(), tabular.changed(dr_grpo.get_config(), rollouts__max_tokens=3)
  def saved(curves):
    return -np.nanmean(curves["wrong_length"], axis=1), sparse.late(curves)
  mean = tabular.changed(c, learner__aggregation="seq-mean-token-mean")
  return problem.arms({"Dr. GRPO": c, "mean over tokens": mean}, saved, steps=150)
