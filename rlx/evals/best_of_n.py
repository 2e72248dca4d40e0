"""Choosing among completions with a PRM. On the host.

Free Process Rewards without Process Labels, Yuan et al. 2024, arXiv:2412.01981.
"""
import math

import numpy as np

from rlx.core import masked


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


def padded(rows):
  """Lists of numbers -> steps_BJ, NaN where a row has fewer."""
  steps_BJ = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
  for steps_J, row in zip(steps_BJ, rows): steps_J[:len(row)] = row
  return steps_BJ


def stacked(parts):
  """Several steps_BJ as one."""
  width = max(part.shape[1] for part in parts)
  return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1])),
                                constant_values=np.nan) for part in parts])


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


def scores(steps_BJ):
  """{aggregate: score_B} of the log-odds that steps are right: `score` by min, sum,
  last and mean, and under "product" log prod_j sigmoid(step_j)."""
  found = {a: score(steps_BJ, a) for a in ("min", "sum", "last", "mean")}
  # As a sum of logs: the product of many small numbers is 0, and ties everything.
  with np.errstate(invalid="ignore"):  # NaN where there is no step.
    log_probs_BJ = -np.logaddexp(0, -np.asarray(steps_BJ))
  return found | dict(product=score(log_probs_BJ, "sum"))


def weights(scores_):
  """{aggregate: weight_B} of what `scores` gives: probabilities, to vote with."""
  return {a: np.exp(s) if a == "product" else 1 / (1 + np.exp(-np.clip(s, -80, None)))
          for a, s in scores_.items()}


def at_n(proxy_G, gold_G, n):
  """One prompt's best of n by a proxy, from the N completions there are.

    gold(n) = sum_{i=n}^{N} C(i-1, n-1) / C(N, n) gold_(i)    i: rank by proxy

  the mean over all sets of n completions.

  Source: WebGPT, Nakano et al. 2021, arXiv:2112.09332. Differs from the paper: equal
  proxies are broken at random (the mean over ways); a completion that lacks one of
  both numbers is left out.

  Args:
    proxy_G: scores to choose by.
    gold_G: what is wanted; verdicts or scores.
    n: how many.
  Returns:
    (proxy, gold) of the chosen, NaN with fewer than n completions.
  Raises:
    ValueError: n < 1.
  """
  if n < 1: raise ValueError(f"n={n!r}: must be >= 1.")
  proxy_G, gold_G = np.asarray(proxy_G, float), np.asarray(gold_G, float)
  known_G = ~np.isnan(proxy_G) & ~np.isnan(gold_G)
  proxy_G, gold_G = proxy_G[known_G], gold_G[known_G]
  if n > len(proxy_G): return math.nan, math.nan
  values, tied_G = np.unique(proxy_G, return_inverse=True)
  last = np.cumsum(np.bincount(tied_G))  # Completions up to each distinct proxy.
  # Chance that the best proxy is at most this one, and that it is this one.
  below = np.array([math.comb(int(i), n) for i in last]) / math.comb(len(proxy_G), n)
  chance = np.diff(below, prepend=0.0)
  means = np.bincount(tied_G, gold_G) / np.bincount(tied_G)
  return float(chance[chance > 0] @ values[chance > 0]), float(chance @ means)


def curve(proxy_PG, gold_PG, counts):
  """`at_n` for several n, mean over prompts, and how far best-of-n is from the policy.

    kl(n) = log n - (n-1)/n

  Gold falling while proxy rises is overoptimisation.

  Source: Coste et al. 2023, arXiv:2310.02743; kl, Stiennon et al. 2020,
  arXiv:2009.01325. Differs from the papers: as `at_n`; a prompt with fewer than n
  completions is left out at that n.

  Args:
    proxy_PG, gold_PG: see `at_n`.
    counts: the n.
  Returns:
    list of dict(n, proxy, gold, kl), NaN if no prompt has n.
  Raises:
    ValueError: n < 1.
  """
  found = []
  for n in counts:
    pairs_P2 = np.array([at_n(*row, n) for row in zip(proxy_PG, gold_PG)])
    pairs_P2 = pairs_P2[~np.isnan(pairs_P2[:, 1])]
    proxy, gold = pairs_P2.mean(axis=0).tolist() if len(pairs_P2) else (math.nan,) * 2
    found.append(dict(n=n, proxy=proxy, gold=gold, kl=math.log(n) - (n - 1) / n))
  return found
