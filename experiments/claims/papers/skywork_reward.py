"""Networks learn 200 pairs, of which a quarter have the wrong label, with each of the four losses
(environments/preferences.py). Focal, hinge and squared losses have the options of
losses/reward_model.py. The measure is the accuracy on new pairs, which are ordered by the gold
score.
"""
import functools

import jax

from experiments.claims.environments import learn, preferences as environment
from rlx.losses import reward_model

MEASURE = "accuracy with Bradley-Terry minus that of the rival"
MARGIN, RATE = 0.01, 0.01
FIRST = ("not recorded", "this is the first version; its outcomes are those of the rows")
LOSSES = {"Bradley-Terry": reward_model.bradley_terry, "focal": reward_model.focal,
          "hinge": reward_model.hinge, "squared": reward_model.squared_margin}


def scores(seed, rate, *, loss_of):
  """Returns the scores of new pairs, of the better ones and of the worse ones."""
  keys = jax.random.split(jax.random.key(seed))
  data = environment.drawn(keys[0])
  return environment.scores(environment.fit(keys[1], data.labelled, rate, loss_of), data.new)


def arms():
  return {name: learn.arm(functools.partial(scores, loss_of=loss_of), environment.accuracy)
          for name, loss_of in LOSSES.items()}
