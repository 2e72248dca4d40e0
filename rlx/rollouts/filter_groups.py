"""Selects the sampled groups that are trained on. Runs on the host, with numpy.

Each function reads fields of the batch by name and returns keep_P, bool. Unknown verdicts
count neither as right nor as wrong. A group without any verdict is never kept.
"""
import numpy as np

from rlx.core import ranges, records


def with_verdict(learn_PG: np.ndarray) -> np.ndarray:
  """Keeps every group that has at least one verdict."""
  return np.any(learn_PG, axis=1)


def accuracy_band(outcome_PG: np.ndarray, learn_PG: np.ndarray, finish_PG: np.ndarray, *,
                  low: ranges.Share = 0.2, high: ranges.Share = 0.8,
                  drop_truncated: bool = False) -> np.ndarray:
  """Keeps groups whose mean verdict is within [low, high], both included.

    keep_p = low <= mean_g outcome[p, g] <= high

  Source: PRIME, Cui et al. 2025, arXiv:2502.01456, section 4 (online prompt
  filtering). Differs from the paper: its algorithm figure has strict
  inequalities, its code and this function include the edges (with 1e-6 of
  slack for float32 means); the mean is over known verdicts.

  Args:
    outcome_PG: verdicts.
    learn_PG: bool, completions with a verdict.
    finish_PG: index into records.FINISH.
    low, high: the band.
    drop_truncated: also drop groups with a completion that was cut at the length limit.
  """
  total_P = np.sum(np.where(learn_PG, outcome_PG, 0.0), axis=1)
  mean_P = total_P / np.maximum(learn_PG.sum(axis=1), 1)
  keep_P = learn_PG.any(axis=1) & (mean_P >= low - 1e-6) & (mean_P <= high + 1e-6)
  if not drop_truncated: return keep_P
  return keep_P & ~(finish_PG == records.FINISH.index("length")).any(axis=1)


def score_band(scores_PG: np.ndarray, learn_PG: np.ndarray, *,
               low: ranges.Number | None = None, high: ranges.Number | None = None,
               least_std: ranges.NotNegative = 0.0) -> np.ndarray:
  """Keeps groups whose mean score is within [low, high], and whose scores differ enough.

    keep_p = low <= mean_g score[p, g] <= high  and  std_g score[p, g] >= least_std

  The same as `accuracy_band` for scores, which may be those of a reward model (`scorers`): it
  then scores every completion that is drawn, before the filter decides. Our own; with
  least_std > 0 groups are left out that give almost no gradient.

  Args:
    scores_PG: scores of the first verifier or scorer in verifier.scores.
    learn_PG: bool, completions with a verdict and with all scores.
    low, high: in units of the score; None: there is no such bound.
    least_std: likewise, of a population of the group's scores.
  """
  n_P = np.maximum(learn_PG.sum(axis=1), 1)
  mean_P = np.sum(np.where(learn_PG, scores_PG, 0.0), axis=1) / n_P
  from_mean_PG = np.where(learn_PG, scores_PG - mean_P[:, None], 0.0)
  std_P = np.sqrt(np.sum(from_mean_PG**2, axis=1) / n_P)
  low, high = -np.inf if low is None else low, np.inf if high is None else high
  return learn_PG.any(axis=1) & (mean_P >= low) & (mean_P <= high) & (std_P >= least_std)


def fill(keep_P: np.ndarray, n: int) -> np.ndarray:
  """Returns the numbers of `n` groups: first those that are kept, then those that failed.

  Each part keeps the order in which groups were drawn (a stable sort). Source: the PRIME
  recipe in verl (filter_and_downsample), which fills its quota with groups that failed.

  Example:
    >>> filter_groups.fill(np.array([False, True, False, True]), 3)
    array([1, 3, 0])
  """
  return np.argsort(~keep_P, kind="stable")[:n]
