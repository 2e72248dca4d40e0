"""Completions of 4 of 4 tokens, one in twenty right, whatever they begin with; groups of
16 share most prefixes of one token and many of two. TEMPO against GRPO, the mean over
the first 60 steps.
"""
from configs.papers import tempo
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "mean accuracy over 60 steps of TEMPO less that of GRPO"


def effects(seeds):
  world = tabular.Tree(prompts=16, vocab=4, length=4)
  right_PL = verdicts.drawn(world, 0.05)

  def accuracy(estimator):
    c = tabular.changed(
        tempo.get_config(), advantages__outcome__name=estimator,
        rollouts__keep=dict(name="keep.everything"))
    found, _ = tabular.train(
        c, world, verdicts.judge(world, right_PL), verdicts.accuracy(world, right_PL),
        seeds=seeds, steps=60, lr=20.0)
    return found["accuracy"].mean(axis=1)

  return accuracy("group.tempo") - accuracy("group.grpo")
