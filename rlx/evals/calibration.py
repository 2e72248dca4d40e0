"""Is what a PRM says as often right as it says? Pure numpy, host side."""
import numpy as np

from rlx.evals import accuracy


def reliability(probability_B, outcome_B, group_B, *, bins=5):
  """What was right among completions to which a PRM gave about the same chance.

    bin k holds k / bins <= p < (k + 1) / bins, the last one also p = 1

  Source: the reliability diagram, DeGroot and Fienberg 1983. Differs from it: means
  are over prompts, of the means over a prompt's completions in the bin, as is the
  interval (`accuracy.interval`): completions of one prompt are not independent.

  Args:
    probability_B: in [0, 1].
    outcome_B: verdicts in [0, 1].
    group_B: equal where the prompt is.
  Returns:
    a list of dict(low_edge, high_edge, n, prompts, predicted, right, low, high), NaN
    in a bin without completions.
  """
  probability_B, outcome_B, group_B = map(np.asarray, (probability_B, outcome_B, group_B))
  bin_B = np.minimum((probability_B * bins).astype(int), bins - 1)
  found = []
  for k in range(bins):
    rows = [np.flatnonzero((bin_B == k) & (group_B == g))
            for g in np.unique(group_B[bin_B == k])]
    outcome_PG = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
    for p, row in enumerate(rows): outcome_PG[p, :len(row)] = outcome_B[row]
    right = accuracy.interval(outcome_PG)
    found.append(dict(
        low_edge=k / bins, high_edge=(k + 1) / bins, n=sum(map(len, rows)),
        prompts=len(rows), predicted=_mean([probability_B[row].mean() for row in rows]),
        right=right["mean"], low=right["low"], high=right["high"]))
  return found


def brier(probability_B, outcome_B):
  """Mean squared distance of what was said from what was: mean (p - outcome)^2.

  Saying 1/2 always gets 1/4 where verdicts are 0 or 1. NaN without completions.

  Source: Brier 1950. Differs from it: nothing known.
  """
  return _mean((np.asarray(probability_B) - np.asarray(outcome_B)) ** 2)


def _mean(x):
  return float(np.mean(x)) if len(x) else float("nan")
