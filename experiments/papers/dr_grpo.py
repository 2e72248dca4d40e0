"""Right completions are rare at every length. Dr. GRPO's sum over tokens against the
mean over a completion's tokens, at rates tuned for the accuracy. Its constant is the
mean length at the start, so that both arms begin with steps of like size; the std is
left out of both."""
import numpy as np

from configs.papers import dr_grpo
from experiments.environments import sparse
from experiments.environments import tabular

CLAIM = 0
MEASURE = "length of wrong completions in 150 steps, mean over a completion's tokens less Dr. GRPO"
MARGIN, RATE = 0.2, 30.0
FIRST = ("confirmed", "the mean is over all steps: at the end there may be no wrong completions")


def arms():
  world, c = sparse.endings(), tabular.changed(dr_grpo.get_config(), rollouts__max_tokens=3)
  def saved(c):
    def arm(seeds, rates):
      found = world.learned(c, seeds, rates, steps=150)
      return -np.nanmean(found["wrong_length"], axis=1), sparse.late(found)
    return arm
  return {"Dr. GRPO": saved(c), "mean over tokens": saved(
      tabular.changed(c, learner__aggregation="seq-mean-token-mean"))}
