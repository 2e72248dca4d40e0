"""The first wrong step of a solution, predicted by a threshold on its steps. Host side.

ProcessBench, Zheng et al. 2024, arXiv:2412.06559, with the sigmoid of the code of
Yuan et al. 2024, arXiv:2412.01981.
"""
import math

import numpy as np
import numpy.typing as npt


def first_error(steps_BJ: npt.ArrayLike, threshold: float) -> np.ndarray:
  """error_B: the first step with sigmoid(step) < threshold, -1 if there is none.

  Args:
    steps_BJ: log-odds that a step is right; NaN where there is no step.
    threshold: in [0, 1].
  Example:
    >>> step_errors.first_error([[1., 0., np.nan], [1., -1., -2.], [np.nan] * 3], .5)
    array([-1,  1, -1])
  """
  below_BJ = 1 / (1 + np.exp(-np.asarray(steps_BJ, float))) < threshold
  return np.where(below_BJ.any(axis=1), np.argmax(below_BJ, axis=1), -1)


def f1(error_B: npt.ArrayLike, label_B: npt.ArrayLike,
       weight_B: npt.ArrayLike | None = None) -> dict[str, float]:
  """How well first errors, and solutions without an error, are predicted.

    F1 = 2 a b / (a + b)    a, b = share of right predictions among solutions with an error,
                            and among those without

  Source: ProcessBench, Zheng et al. 2024, arXiv:2412.06559. Differs from the paper:
  without solutions of both kinds, or with NaN in error_B, it is NaN.

  Args:
    error_B: the prediction, see `first_error` and `cross_validate`.
    label_B: index of the first wrong step, -1 for none.
    weight_B: weight of each solution; None: 1.
  Returns:
    dict(f1, erroneous, correct): F1, a, b.
  Example:
    >>> step_errors.f1([1, 0, -1, -1], [1, 2, 0, -1])
    {'f1': 0.5, 'erroneous': 0.3333..., 'correct': 1.0}
  """
  error_B, label_B = np.asarray(error_B, float), np.asarray(label_B)
  right_B = np.where(np.isnan(error_B), np.nan, error_B == label_B)
  weight_B = np.ones(len(label_B)) if weight_B is None else np.asarray(weight_B, float)
  a, b = (float(right_B @ part_B / part_B.sum()) if part_B.any() else math.nan
          for part_B in (weight_B * (label_B != -1), weight_B * (label_B == -1)))
  return dict(f1=0.0 if a == b == 0 else 2 * a * b / (a + b), erroneous=a, correct=b)


def tune(steps_BJ: npt.ArrayLike, label_B: npt.ArrayLike, *,
         count: int = 2001) -> tuple[float, float]:
  """The threshold with the highest F1.

  Args:
    steps_BJ, label_B: see `first_error` and `f1`.
    count: number of thresholds tried, evenly from 0 to 1; the first of the best is chosen.
  Returns:
    (threshold, F1), NaN without solutions of both kinds.
  """
  grid, odds = np.linspace(0, 1, count), 1 / (1 + np.exp(-np.asarray(steps_BJ, float)))
  # Thresholds with the same scores below them predict the same.
  first = np.unique(np.searchsorted(np.sort(odds, axis=None), grid), return_index=True)[1]
  tried = [(float(t), f1(first_error(steps_BJ, t), label_B)["f1"]) for t in grid[first]]
  best = max(tried, key=lambda x: -1.0 if math.isnan(x[1]) else x[1])
  return (math.nan, math.nan) if math.isnan(best[1]) else best


def cross_validate(steps_BJ: npt.ArrayLike, label_B: npt.ArrayLike,
                   fold_B: npt.ArrayLike) -> np.ndarray:
  """error_B, each half predicted with the threshold that is best on the other half.

  Args:
    steps_BJ, label_B: see `first_error` and `f1`.
    fold_B: bool, the half of each solution; solutions of one problem are in the same half.
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
