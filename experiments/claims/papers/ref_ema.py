"""A KL reference that is mixed with the policy every 10 of 200 steps against a fixed reference.

Each prompt has 64 possible completions, of which few are right. The accuracy is measured.
"""
from configs.papers import ref_ema
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy with a reference that follows the policy minus that with a fixed one"
MARGIN, RATE = 0.05, 2.0
FIRST = ("confirmed", "it was taken to follow from the formula until rates were tuned")


def arms():
  tree, c = tabular.Tree(prompts=8, vocab=8, length=2), ref_ema.get_config()
  return tabular.arms({"following": c, "fixed": tabular.changed(c, kl__sync_every=0)},
                      tree, verdicts.environment(tree, 0.1, spread=1.0), "accuracy", steps=200)
