"""Right completions are rare at every length. Dr. GRPO's sum over tokens against the
mean over a completion's tokens. Its constant is the mean length at the start, so that
both arms begin with steps of like size; the std is left out of both."""
from configs.papers import dr_grpo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "length of wrong completions, mean over a completion's tokens less Dr. GRPO"


def effects(seeds):
  world = sparse.endings()
  c = tabular.changed(dr_grpo.get_config(), rollouts__max_tokens=3)
  length = lambda c: sparse.late(
      world.learned(c, seeds, steps=150, lr=30.0), "wrong_length")
  return length(tabular.changed(c, learner__aggregation="seq-mean-token-mean")) - length(c)
