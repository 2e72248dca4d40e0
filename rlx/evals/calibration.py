"""Calibration of a PRM: predicted probabilities against verdicts. Pure numpy, host side."""
import numpy as np
import numpy.typing as npt

from rlx.evals import accuracy, best_of_n


def reliability(probability_B: npt.ArrayLike, outcome_B: npt.ArrayLike, group_B: npt.ArrayLike, *,
                bins: int = 5) -> list[dict[str, float]]:
  """The share of right completions in bins of the probability that a PRM predicts.

    bin k holds k / bins <= p < (k + 1) / bins, the last one also p = 1

  Source: the reliability diagram, DeGroot and Fienberg 1983. Differs from it: means and the
  interval (`accuracy.interval`) are over prompts, of the means over a prompt's completions in the
  bin, because completions of one prompt are not independent.

  Args:
    probability_B: in [0, 1].
    outcome_B: verdicts in [0, 1].
    group_B: equal for completions of one prompt.
  Returns:
    a list of dict(low_edge, high_edge, n, prompts, predicted, right, low, high), NaN
    in a bin without completions.
  Example:
    >>> low, high = calibration.reliability([.1, .3, .4, .5, 1.], [0, 1, 0, 1, .5], [0, 0, 1, 1, 1],
    ...                                     bins=2)
    >>> low["n"], low["prompts"], round(low["predicted"], 2), low["right"]
    (3, 2, 0.3, 0.25)
    >>> high["n"], high["prompts"], high["predicted"], high["right"]
    (2, 1, 0.75, 0.75)
  """
  probability_B, outcome_B, group_B = map(np.asarray, (probability_B, outcome_B, group_B))
  bin_B = np.minimum((probability_B * bins).astype(int), bins - 1)
  def one(k):
    rows = [np.flatnonzero((bin_B == k) & (group_B == g)) for g in np.unique(group_B[bin_B == k])]
    right = accuracy.interval(best_of_n.pad([outcome_B[row] for row in rows]))
    return dict(
        low_edge=k / bins, high_edge=(k + 1) / bins, n=sum(map(len, rows)), prompts=len(rows),
        predicted=accuracy.mean([probability_B[row].mean() for row in rows]),
        right=right["mean"], low=right["low"], high=right["high"])
  return [one(k) for k in range(bins)]


def brier(probability_B: npt.ArrayLike, outcome_B: npt.ArrayLike) -> float:
  """The Brier score, mean (p - outcome)^2; NaN without completions.

  A constant prediction of 1/2 has 1/4 if verdicts are 0 or 1.

  Source: Brier 1950. Differs from it: nothing known.

  Example:
    >>> calibration.brier([1., .5], [1, 0])
    0.125
  """
  return accuracy.mean((np.asarray(probability_B) - np.asarray(outcome_B)) ** 2)


def compute_expected_error(probability_B: npt.ArrayLike, outcome_B: npt.ArrayLike, *,
                   bins: int = 10) -> float:
  """The expected calibration error, NaN without completions.

    ECE = sum_k n_k / n |mean p - mean outcome|,   k: the bins of `reliability`

  Source: Naeini et al. 2015, Obtaining well calibrated probabilities using Bayesian binning;
  Guo et al. 2017, arXiv:1706.04599. Differs from them: the probability is that of the outcome 1,
  and not of the class that is predicted.

  Args:
    probability_B: in [0, 1].
    outcome_B: verdicts in [0, 1].
  Example:
    >>> calibration.compute_expected_error([.1, .3, .9, 1.], [0, 1, 1, 1], bins=2)
    0.175
  """
  probability_B, outcome_B = np.asarray(probability_B, float), np.asarray(outcome_B, float)
  if not len(probability_B): return float("nan")
  bin_B = np.minimum((probability_B * bins).astype(int), bins - 1)
  gap_K = np.bincount(bin_B, probability_B - outcome_B, minlength=bins)
  return float(np.abs(gap_K).sum() / len(probability_B))
