"""Completions of 4 of 4 tokens, one in twenty right, whatever they begin with; groups of
16 share most prefixes of one token and many of two. TEMPO against GRPO, the mean over
the first 60 steps.
"""
from configs.papers import tempo
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "mean accuracy over 60 steps of TEMPO less that of GRPO"
MARGIN, RATE = 0.05, 20.0
FIRST = ("confirmed", None)


def arms():
  world, c = tabular.Tree(prompts=16, vocab=4, length=4), tempo.get_config()
  def accuracy(c):
    return lambda seeds, rates: tabular.train(
        c, world, verdicts.environment(world, 0.05), seeds=seeds, lr=rates,
        steps=60)[0]["accuracy"].mean(axis=1)
  grpo = tabular.changed(c, advantages__outcome=dict(name="group.grpo"))
  return {"TEMPO": accuracy(c), "GRPO": accuracy(grpo)}
