"""A tenth of 64 completions right, three verdicts of ten wrong, eight passes over each
batch: the mixed ratio against the ratio of tokens and that of completions, in the
clip ranges of DAPO and GSPO, which are assumed for the paper."""
import numpy as np

from configs.papers import dhpo
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "accuracy of DHPO less that of GRPO or of GSPO, whichever is less behind"
REVISED = "both arms started near 1, then seeds differed more than arms"


def effects(seeds):
  world = tabular.Tree(prompts=32, vocab=4, length=3)
  right_PL = verdicts.drawn(world, 0.1)

  def accuracy(c):
    found, _ = tabular.train(
        tabular.changed(c, learner__epochs=8), world,
        verdicts.judge(world, right_PL, flip=0.3), verdicts.accuracy(world, right_PL),
        seeds=seeds, steps=100, lr=80.0)
    return found["accuracy"][:, -1]

  c = dhpo.get_config()
  token = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.28)
  completion = dict(name="sequence.gspo", clip_low=3e-4, clip_high=4e-4)
  return accuracy(c) - np.maximum(
      accuracy(tabular.changed(c, learner__loss=token)),
      accuracy(tabular.changed(c, learner__loss=completion)))
