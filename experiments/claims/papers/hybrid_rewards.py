"""Two judges of the texts of environments/judges.py learn which ones are right: one knows the
reference answer, the other one does not and reads the text alone, in place of a judge that compares
it with another completion. In the texts that they learn from, right ones begin with an opener of a
reasoning more often than wrong ones; in those that are judged they do not.

The best of 64 new texts by a judge's score is chosen; measured is how often it is right. The place
of the verifier in the order is not measured: here its verdict is what is meant by right.
"""
import functools
import random

import numpy as np

from experiments.claims.environments import judges
from rlx.evals import best_of_n

MEASURE = ("accuracy of the best of 64 by a judge that knows the answer minus that by one that "
           "does not")
MARGIN, RATE = 0.05, 0.05
FIRST = ("confirmed", None)
TEXTS = 400
UNKNOWING = judges.HASHES + 2  # Features without the two that know the reference answer.


@functools.cache
def drawn(seed):
  """Returns (texts to learn from, new texts), each as (features_NF, labels_N)."""
  rng = random.Random(f"hybrid_rewards/{seed}")
  opened = rng.uniform(0.1, 0.3), rng.uniform(0.8, 1.0)
  sets = (judges.texts(f"hybrid_rewards/{seed}/train", TEXTS, opened=opened),
          judges.texts(f"hybrid_rewards/{seed}/test", TEXTS))
  columns = [list(zip(*rows)) for rows in sets]
  return [(judges.features(prompts, texts), np.array(labels, np.float32))
          for prompts, texts, labels in columns]


def arms():
  def judge(width):
    def arm(seeds, rates):
      x_INF, labels_IN = (np.stack(x) for x in zip(*(drawn(seed)[0] for seed in seeds)))
      weights_IF = np.asarray(judges.fit(x_INF[:, :, :width], labels_IN, rates))
      return np.array([value(*drawn(seed)[1], w_F) for seed, w_F in zip(seeds, weights_IF)])
    return arm

  def value(x_NF, labels_N, weights_F):
    return best_of_n.at_n(x_NF[:, :len(weights_F)] @ weights_F, labels_N, 64)[1]

  return {"knows the answer": judge(judges.HASHES + 4), "does not": judge(UNKNOWING)}
