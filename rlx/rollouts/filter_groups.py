"""Which sampled groups deserve a gradient. Host side, numpy.

Each function takes what is known of every group and returns keep_P, bool. NaN
verdicts count neither as right nor as wrong; a group with no verdict at all is
never kept.
"""
import numpy as np

from rlx.core import ranges


def with_verdict(outcome_PG, truncated_PG):
  """Keeps every group that has at least one verdict."""
  del truncated_PG
  return ~np.isnan(outcome_PG).all(axis=1)


def accuracy_band(outcome_PG, truncated_PG, *, low: ranges.SHARE = 0.2, high: ranges.SHARE = 0.8,
                  drop_truncated=False):
  """Keeps groups whose mean verdict is within [low, high], both included.

    keep_p = low <= mean_g outcome[p, g] <= high

  Source: PRIME, Cui et al. 2025, arXiv:2502.01456, section 4 (online prompt
  filtering). Differs from the paper: its algorithm figure has strict
  inequalities, its code and this function include the edges (with 1e-6 of
  slack for float32 means); the mean is over known verdicts.

  Args:
    outcome_PG: verdicts, NaN = could not tell.
    truncated_PG: bool, the completion was cut at the length limit.
    low, high: the band.
    drop_truncated: also drop groups with any truncated completion.
  """
  known_PG = ~np.isnan(outcome_PG)
  total_P = np.sum(np.where(known_PG, outcome_PG, 0.0), axis=1)
  mean_P = total_P / np.maximum(known_PG.sum(axis=1), 1)
  keep_P = (known_PG.any(axis=1)
            & (mean_P >= low - 1e-6) & (mean_P <= high + 1e-6))
  return keep_P & ~truncated_PG.any(axis=1) if drop_truncated else keep_P


def fill(keep_P, n):
  """Row numbers of `n` groups: those kept first, then those that failed.

  The order within each part is the order drawn (stable), so the result does
  not depend on a sort's whims. Source: the PRIME recipe in verl
  (filter_and_downsample), which fills its quota with groups that failed.
  """
  return np.argsort(~keep_P, kind="stable")[:n]
