"""Right completions are rare at every length, four passes over every batch. GSPO
against the clip of a token's ratio at the bounds that its paper gives GRPO. How fast
is the mean accuracy over training; how much is clipped is not measured."""
from configs.papers import gspo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy averaged over 150 steps, GSPO less the clip of token ratios"
TOKEN = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.27)


def effects(seeds):
  world, c = sparse.endings(), tabular.changed(gspo.get_config(), learner__epochs=4)
  speed = lambda c: world.learned(c, seeds, steps=150, lr=30.0)["accuracy"].mean(axis=1)
  return speed(c) - speed(tabular.changed(c, learner__loss=TOKEN))
