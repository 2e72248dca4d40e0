"""A quarter of 64 completions is right, so that entropy need not fall when accuracy rises, and
each batch is used for four passes. STEER is compared with the same clip without its weights,
and with an entropy bonus and PPO's clip instead of them.

Measured is the largest distance of the entropy from its start until accuracy reaches 0.8, or
until the end of training, so that a slower method does not appear flatter. The learning rate is
the one with the best accuracy.
"""
import numpy as np

from configs.papers import steer
from experiments.claims.environments import tabular, verdicts

MEASURE = "change of entropy in nats until the accuracy is 0.8: the rival minus STEER"
MARGIN, RATE = 0.1, 1.0
FIRST = ("not recorded", "the learning rate was so large that the arms did not differ")
compare = lambda steer_I, rival_I: rival_I - steer_I
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key):
  plain = verdicts.environment(TREE, 0.25, spread=0.5)(key)
  return plain._replace(measure=lambda x: dict(plain.measure(x), entropy=verdicts.entropy(TREE, x)))


def arms():
  c = tabular.changed(steer.get_config(), learner__epochs=4)
  higher = tabular.changed(c, learner__token_weight=dict(name=None))
  bonus = tabular.changed(higher, learner__entropy_coef=0.01, learner__loss__clip_high=0.2)
  def moved(curves):
    accuracy_IS = curves["accuracy"]
    counts_IS = np.ones_like(accuracy_IS, bool)  # Includes the step that reaches it.
    counts_IS[:, 1:] = np.maximum.accumulate(accuracy_IS[:, :-1], axis=1) < 0.8
    gone_IS = np.abs(curves["entropy"] - curves["entropy"][:, :1])
    return np.max(gone_IS * counts_IS, axis=1), accuracy_IS[:, -1]
  return tabular.arms({"STEER": c, "higher clip": higher, "entropy bonus": bonus},
                      TREE, environment, moved, steps=130)
