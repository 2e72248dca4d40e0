"""Choosing among completions with a PRM. On the host.

Free Process Rewards without Process Labels, Yuan et al. 2024, arXiv:2412.01981.
"""
import math

import numpy as np

from rlx.core import masked
from rlx.evals import pass_at_k


def step_values(log_ratio_BT, mask_BT, ends_BJ, *, scale=1.0):
  """The PRM's value at the end of each step.

    Q_j = scale * sum over tokens up to the end of step j of the log-ratio

  Args:
    log_ratio_BT: log pi_phi - log pi_ref, or log pi_phi alone; anything on padding.
    mask_BT: bool, the tokens that count.
    ends_BJ: column of each step's last token, -1 where a row has fewer steps.
    scale: monotone; matters only to a sigmoid of the result.
  Returns:
    values_BJ, NaN where there is no step.
  """
  log_ratio_BT, ends_BJ = np.asarray(log_ratio_BT), np.asarray(ends_BJ)
  running_BT = scale * np.cumsum(np.where(mask_BT, log_ratio_BT, 0.0), axis=1)
  values_BJ = np.take_along_axis(running_BT, np.maximum(ends_BJ, 0), axis=1)
  return np.where(ends_BJ >= 0, values_BJ, np.nan)


def step_rewards(values_BJ):
  """r_j = Q_j - Q_{j-1}: what each step added. NaN where there is no step."""
  return np.diff(values_BJ, axis=1, prepend=0.0)


def score(steps_BJ, aggregate="min"):
  """One score per completion from its step rewards, values or probabilities.

  Source: arXiv:2412.01981: the minimum over steps; the evaluation of RewardMATH,
  Kim et al. 2024, arXiv:2410.01729, compares the others.

  Args:
    steps_BJ: NaN where there is no step.
    aggregate: a name in `masked.AGGREGATES`.
  Returns:
    score_B, -inf for a completion without steps.
  Raises:
    ValueError: unknown aggregate.
  """
  has_BJ = ~np.isnan(steps_BJ)
  score_B = np.asarray(masked.aggregate(steps_BJ, has_BJ, aggregate))
  return np.where(has_BJ.any(axis=1), score_B, -np.inf)


def min_at_last_share(steps_BJ):
  """Share of completions whose lowest step score is that of their last step.

    share = mean 1[s_K < min_{j<K} s_j]    K steps of a completion, K > 1

  Near 1 / K for errors anywhere; a PRM that scores outcomes is far above.

  Source: Zhang et al. 2025, arXiv:2501.07301. Differs from the paper: completions of
  one step are left out.

  Args:
    steps_BJ: NaN where there is no step.
  Returns:
    float, NaN without a completion of two steps.
  """
  rows = [steps_J[~np.isnan(steps_J)] for steps_J in np.asarray(steps_BJ, float)]
  found = [s[-1] < s[:-1].min() for s in rows if len(s) > 1]
  return float(np.mean(found)) if found else float("nan")


def best_of_n(score_PG, outcome_PG):
  """Share of prompts whose completion of highest score is right.

  Ties go to the first. A prompt whose chosen completion has no known verdict
  is left out.

  Args:
    score_PG: NaN and -inf are never chosen while there is another.
    outcome_PG: verdicts; right means > 1/2.
  Returns:
    float, NaN if nothing is known.
  """
  score_PG = np.where(np.isnan(score_PG), -np.inf, score_PG)
  chosen_P = np.take_along_axis(
      np.asarray(outcome_PG), np.argmax(score_PG, axis=1)[:, None], axis=1)[:, 0]
  known_P = ~np.isnan(chosen_P)
  return float(np.mean(chosen_P[known_P] > 0.5)) if known_P.any() else float("nan")


def curve(proxy_PG, gold_PG, counts):
  """Best of n by a proxy, for several n at once, from the N completions there are.

    gold(n) = sum_{i=n}^{N} C(i-1, n-1) / C(N, n) gold_(i)    i: rank by proxy
    kl(n)   = log n - (n-1)/n

  the mean over all subsets of n completions, and over prompts. kl is the divergence
  of best-of-n from the policy: gold falling while proxy rises is overoptimisation.

  Source: the estimator is WebGPT, Nakano et al. 2021, arXiv:2112.09332, used by
  Coste et al. 2023, arXiv:2310.02743, for this curve; kl, Stiennon et al. 2020,
  arXiv:2009.01325. Differs from the papers: equal proxies are broken at random (the
  mean over ways); a completion that lacks one of both numbers is left out, and a
  prompt with fewer than n others at that n.

  Args:
    proxy_PG: scores to choose by.
    gold_PG: what is wanted; verdicts or scores.
    counts: the n.
  Returns:
    list of dict(n, proxy, gold, kl), NaN if no prompt has n.
  Raises:
    ValueError: n < 1.
  """
  rows = {n: [] for n in counts}
  for proxy_G, gold_G in zip(np.asarray(proxy_PG, float), np.asarray(gold_PG, float)):
    known_G = ~np.isnan(proxy_G) & ~np.isnan(gold_G)
    proxy_G, gold_G = proxy_G[known_G], gold_G[known_G]
    values, tied_G = np.unique(proxy_G, return_inverse=True)
    last = np.cumsum(np.bincount(tied_G))  # Completions up to each distinct proxy.
    for n in counts:
      if n < 1: raise ValueError(f"n={n!r}: must be >= 1.")
      if n > len(proxy_G): continue
      # Chance that the best proxy is at most this one, and that it is this one.
      below = np.array([math.comb(int(i), n) for i in last]) / math.comb(len(proxy_G), n)
      chance = np.diff(below, prepend=0.0)
      means = np.bincount(tied_G, gold_G) / np.bincount(tied_G)
      rows[n].append((chance @ values, chance @ means))
  return [dict(n=n, kl=math.log(n) - (n - 1) / n, **dict(zip(
      ("proxy", "gold"), np.mean(found, axis=0).tolist() if found else (math.nan,) * 2)))
      for n, found in rows.items()]


def weighted_majority(answers, score_G):
  """The answer whose completions have the largest sum of sigmoid(score).

  Source: arXiv:2412.01981. Args: as `pass_at_k.majority`.
  """
  score_G = np.asarray(score_G, float)
  return pass_at_k.majority(answers, 1 / (1 + np.exp(-score_G)))


def first_error(steps, threshold):
  """Index of the first step with sigmoid(step) < threshold, -1 if there is none."""
  below = 1 / (1 + np.exp(-np.asarray(steps, float))) < threshold
  return int(np.argmax(below)) if below.any() else -1


def error_threshold(steps, labels, *, count=2001):
  """The threshold that finds first errors best.

    F1 = 2 a b / (a + b)    a, b = share of solutions with an error, and without
                            one, for which `first_error` is right

  Source: ProcessBench, Zheng et al. 2024, arXiv:2412.06559, with
  the sigmoid of the code of arXiv:2412.01981.

  Args:
    steps: per solution a list of step values.
    labels: index of the first wrong step, -1 for none.
    count: thresholds tried, evenly from 0 to 1; the first of the best wins.
  Returns:
    (threshold, F1).
  """
  labels = np.asarray(labels)
  best = (0.0, -1.0)
  for threshold in np.linspace(0, 1, count):
    right = np.array([first_error(s, threshold) for s in steps]) == labels
    a, b = (float(right[part].mean()) if part.any() else 0.0
            for part in (labels != -1, labels == -1))
    f1 = 2 * a * b / (a + b) if a + b else 0.0
    if f1 > best[1]: best = (float(threshold), f1)
  return best
