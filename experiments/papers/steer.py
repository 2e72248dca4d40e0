"""A quarter of 64 completions right, so that entropy need not fall with errors; four
passes over each batch. How far entropy goes from its start until accuracy is 0.8, so
that a slower method does not look flatter: STEER against its own higher clip without
the weights, and against a bonus for entropy in its place with PPO's clip."""
import numpy as np

from configs.papers import steer
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = ("nats that entropy moves until accuracy is 0.8 under a higher clip, or a "
           "bonus if less, less those under STEER")
REVISED = "a smaller rate, to tell the arms apart"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  right_PL = verdicts.drawn(world, 0.25)
  measure = lambda x: dict(verdicts.accuracy(world, right_PL)(x),
                           entropy=verdicts.entropy(world, x))

  def moved(**changes):
    c = tabular.changed(steer.get_config(), learner__epochs=4, **changes)
    found, _ = tabular.train(
        c, world, verdicts.judge(world, right_PL), measure, seeds=seeds, steps=130,
        lr=1.0, start=lambda key: world.start(key, 0.5))
    reached = found["accuracy"] >= 0.8
    last = np.where(reached.any(1), reached.argmax(1), reached.shape[1] - 1)
    gone = np.abs(found["entropy"] - found["entropy"][:, :1])
    return np.array([gone[i, :n + 1].max() for i, n in enumerate(last)])

  off = dict(learner__token_weight=dict(name=None))
  bonus = off | dict(learner__entropy_coef=0.01, learner__loss__clip_high=0.2)
  return np.minimum(moved(**off), moved(**bonus)) - moved()
