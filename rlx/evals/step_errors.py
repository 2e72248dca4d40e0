"""Finding the first wrong step of a solution by a threshold on its steps. Host side.

ProcessBench, Zheng et al. 2024, arXiv:2412.06559, with the sigmoid of the code of
Yuan et al. 2024, arXiv:2412.01981.
"""
import math

import numpy as np


def first_error(steps_BJ, threshold):
  """error_B: the first step with sigmoid(step) < threshold, -1 if there is none.

  Args:
    steps_BJ: log-odds that a step is right; NaN where there is no step.
    threshold: in [0, 1].
  """
  below_BJ = 1 / (1 + np.exp(-np.asarray(steps_BJ, float))) < threshold
  return np.where(below_BJ.any(axis=1), np.argmax(below_BJ, axis=1), -1)


def f1(error_B, label_B, weight_B=None):
  """How well first errors are found, and solutions without one let pass.

    F1 = 2 a b / (a + b)    a, b = share of solutions with an error, and without
                            one, whose first error is told right

  Source: ProcessBench, Zheng et al. 2024, arXiv:2412.06559. Differs from the paper:
  without solutions of both kinds it is NaN, and with an error_B of NaN.

  Args:
    error_B: what is told, see `first_error` and `crossed`.
    label_B: index of the first wrong step, -1 for none.
    weight_B: how often a solution counts; None: once.
  Returns:
    dict(f1, erroneous, correct): F1, a, b.
  """
  error_B, label_B = np.asarray(error_B, float), np.asarray(label_B)
  right_B = np.where(np.isnan(error_B), np.nan, error_B == label_B)
  weight_B = np.ones(len(label_B)) if weight_B is None else np.asarray(weight_B, float)
  a, b = (float(right_B @ part_B / part_B.sum()) if part_B.any() else math.nan
          for part_B in (weight_B * (label_B != -1), weight_B * (label_B == -1)))
  return dict(f1=0.0 if a == b == 0 else 2 * a * b / (a + b), erroneous=a, correct=b)


def tune(steps_BJ, label_B, *, count=2001):
  """The threshold that finds first errors best.

  Args:
    steps_BJ, label_B: see `first_error` and `f1`.
    count: thresholds tried, evenly from 0 to 1; the first of the best wins.
  Returns:
    (threshold, F1), NaN without solutions of both kinds.
  """
  found = [(float(t), f1(first_error(steps_BJ, t), label_B)["f1"])
           for t in np.linspace(0, 1, count)]
  best = max(found, key=lambda x: -1.0 if math.isnan(x[1]) else x[1])
  return (math.nan, math.nan) if math.isnan(best[1]) else best


def crossed(steps_BJ, label_B, fold_B):
  """error_B, each half told at the threshold that is best on the other half.

  Args:
    steps_BJ, label_B: see `first_error` and `f1`.
    fold_B: bool, which half a solution is in; those of one problem in the same.
  Returns:
    error_B; NaN where the other half has no threshold.
  """
  steps_BJ, label_B, fold_B = map(np.asarray, (steps_BJ, label_B, fold_B))
  error_B = np.full(len(label_B), np.nan)
  for part_B in (fold_B, ~fold_B):
    threshold, _ = tune(steps_BJ[~part_B], label_B[~part_B])
    if not math.isnan(threshold):
      error_B[part_B] = first_error(steps_BJ[part_B], threshold)
  return error_B
