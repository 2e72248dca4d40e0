"""Four questions behind each prompt, which the policy cannot tell apart, with chances
0.4, 0.3, 0.2 and 0.1 and a right completion of 16 each: k = 4 against k = 1.

Were each question a prompt of its own, its table would learn it alone, and nothing
could be lost by settling on one answer. The second phase with k = 1 is left out.
"""
import math

import numpy as np

from configs.papers import passk_training
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = ("pass@4, or entropy in units of the start's if that gains less, trained "
           "with k = 4 less with k = 1")


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=2)
  judge, measure = verdicts.blind(world)

  def of(k):
    c = tabular.changed(passk_training.get_config(), rollouts__per_prompt=8,
                        advantages__outcome__k=k)
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=300, lr=5.0)
    return found["pass_at_4"][:, -1], found["entropy"][:, -1] / math.log(16)

  return np.min(np.subtract(of(4), of(1)), axis=0)
