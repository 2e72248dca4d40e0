"""Completions have four tokens from a vocabulary of four. One in twenty is right, whatever its
prefix is. In groups of 16, most completions share a prefix of one token and many share one of
two tokens. TEMPO is compared with GRPO by the mean accuracy over the first 60 steps; the claim
is that TEMPO learns faster.
"""
from configs.papers import tempo
from experiments.claims.environments import tabular, verdicts

MEASURE = "mean accuracy over 60 steps of TEMPO minus that of GRPO"
MARGIN, RATE = 0.05, 20.0
FIRST = ("confirmed", None)


def arms():
  tree, c = tabular.Tree(prompts=16, vocab=4, length=4), tempo.get_config()
  grpo = tabular.changed(c, advantages__outcome=dict(name="group.grpo"))
  return tabular.arms({"TEMPO": c, "GRPO": grpo},
                      tree, verdicts.environment(tree, 0.05), tabular.mean("accuracy"), steps=60)
