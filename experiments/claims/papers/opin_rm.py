"""A completion is a vector of 128 numbers. Seven features, of which a domain says that they matter,
are linear functions of it; a scorer reads them with errors whose standard deviation is half of
theirs. A preference follows the Bradley-Terry model of a sum of the features, with random weights,
and of a rest that is no feature and has a tenth of the variance.

Both reward models are linear and learned by `reward_model.fit_linear`: one from the features of 47
pairs, the other one from the vectors of 21 times as many.
"""
import numpy as np

from rlx.evals import reward_model as evaluation
from rlx.losses import reward_model

MEASURE = "accuracy on new pairs with features of 47 pairs minus 95% of that without, of 987 pairs"
MARGIN = 0.05
FIRST = ("opposite", None)
PAIRS, TIMES, SIZE, FEATURES, NEW = 47, 21, 128, 7, 2000


def difference(seed):
  """Returns the accuracy with features less 95% of that without."""
  rng = np.random.default_rng(seed)
  reads_DF = rng.normal(size=(SIZE, FEATURES)) / SIZE**0.5
  weight_F, rest_D = rng.normal(size=FEATURES), rng.normal(size=SIZE)
  weight_F *= (0.9 / np.sum(weight_F**2))**0.5
  rest_D *= (0.1 / np.sum(rest_D**2))**0.5
  slope = 3.0  # Nats per standard deviation of the worth.

  def pairs(count, *, sure=False):
    """Returns (vectors, read features) of better and worse completions, each [2, N, ...]."""
    x_2ND = rng.normal(size=(2, count, SIZE))
    true_2NF = x_2ND @ reads_DF
    worth_2N = true_2NF @ weight_F + x_2ND @ rest_D
    gap_N = slope * (worth_2N[0] - worth_2N[1])
    is_first_N = (gap_N > 0) if sure else rng.random(count) < 1 / (1 + np.exp(-gap_N))
    read_2NF = true_2NF + 0.5 * rng.normal(size=true_2NF.shape)
    return [np.where(is_first_N[None, :, None], x, x[::-1]) for x in (x_2ND, read_2NF)]

  few, many, new = pairs(PAIRS), pairs(TIMES * PAIRS), pairs(NEW, sure=True)
  without, features = (
      evaluation.pair_accuracy(*(new[kind] @ reward_model.fit_linear(*learned[kind])))
      for kind, learned in enumerate((many, few)))
  return features - 0.95 * without


def effects(seeds):
  return {"21 times as many pairs without features": [difference(int(seed)) for seed in seeds]}
