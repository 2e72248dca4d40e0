"""Rare right completions of uneven probability, four passes over every batch: PPO's
clip takes the gradient from what has become likelier, CISPO does not."""
from configs.papers import cispo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "accuracy of CISPO after 10 steps less that of DAPO's clip after 20"
REVISED = "both arms ended near 1 (it was opposite)"
DAPO = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.28)


def effects(seeds):
  world = sparse.rare(spread=2.0)
  c = tabular.changed(cispo.get_config(), learner__epochs=4)
  accuracy = lambda c, steps: world.learned(
      c, seeds, steps=steps, lr=20.0)["accuracy"][:, -1]
  return accuracy(c, 10) - accuracy(tabular.changed(c, learner__loss=DAPO), 20)
