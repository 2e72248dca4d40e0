"""Choosing among completions with a PRM. On the host.

Free Process Rewards without Process Labels, Yuan et al. 2024, arXiv:2412.01981.
"""
import math
from collections.abc import Sequence

import numpy as np

from rlx.core import masked
from rlx.evals import accuracy


def step_values(log_ratio_BT: np.ndarray, mask_BT: np.ndarray, ends_BJ: np.ndarray, *,
                scale: float = 1.0) -> np.ndarray:
  """The PRM's value at the end of each step.

    Q_j = scale * sum over tokens up to the end of step j of the log-ratio

  Args:
    log_ratio_BT: log pi_phi - log pi_ref, or log pi_phi alone; anything on padding.
    mask_BT: bool, the tokens that count.
    ends_BJ: column of each step's last token, -1 where a row has fewer steps.
    scale: > 0; it changes no order.
  Returns:
    values_BJ, NaN where there is no step.
  Example:
    >>> mask_BT = np.array([[False, True, True, True]])
    >>> best_of_n.step_values(np.array([[np.nan, 1., 2., -4.]]), mask_BT, np.array([[2, 3, -1]]),
    ...                       scale=.5)
    array([[ 1.5, -0.5,  nan]])
  """
  log_ratio_BT, ends_BJ = np.asarray(log_ratio_BT), np.asarray(ends_BJ)
  running_BT = scale * np.cumsum(np.where(mask_BT, log_ratio_BT, 0.0), axis=1)
  values_BJ = np.take_along_axis(running_BT, np.maximum(ends_BJ, 0), axis=1)
  return np.where(ends_BJ >= 0, values_BJ, np.nan)


def step_rewards(values_BJ: np.ndarray) -> np.ndarray:
  """r_j = Q_j - Q_{j-1}, the change of the value in each step. NaN where there is no step.

  Example:
    >>> best_of_n.step_rewards(np.array([[1.5, -.5, np.nan]]))
    array([[ 1.5, -2. ,  nan]])
  """
  return np.diff(values_BJ, axis=1, prepend=0.0)


def pad(rows: Sequence[Sequence[float]]) -> np.ndarray:
  """steps_BJ of lists of numbers, NaN where a row has fewer.

  Example:
    >>> best_of_n.pad([[1.], [2., 3.]])
    array([[ 1., nan],
           [ 2.,  3.]])
  """
  steps_BJ = np.full((len(rows), max(map(len, rows), default=0)), np.nan)
  for steps_J, row in zip(steps_BJ, rows): steps_J[:len(row)] = row
  return steps_BJ


def stack(parts: Sequence[np.ndarray]) -> np.ndarray:
  """The rows of several steps_BJ.

  Example:
    >>> best_of_n.stack([np.ones((1, 1)), np.full((1, 2), 2.)])
    array([[ 1., nan],
           [ 2.,  2.]])
  """
  width = max(part.shape[1] for part in parts)
  return np.concatenate([np.pad(part, ((0, 0), (0, width - part.shape[1])),
                                constant_values=np.nan) for part in parts])


def score(steps_BJ: np.ndarray, aggregate: str = "min") -> np.ndarray:
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
  Example:
    >>> best_of_n.score(np.array([[1.5, -2.], [1.5, np.nan], [np.nan, np.nan]]))
    array([-2. ,  1.5, -inf], dtype=float32)
  """
  has_BJ = ~np.isnan(steps_BJ)
  score_B = np.asarray(masked.aggregate(steps_BJ, has_BJ, aggregate))
  return np.where(has_BJ.any(axis=1), score_B, -np.inf)


def best_of_n(score_PG: np.ndarray, outcome_PG: np.ndarray) -> float:
  """Share of prompts whose completion with the highest score is right.

  The first of equal scores is chosen. Prompts whose chosen completion has no known verdict are
  excluded.

  Args:
    score_PG: NaN and -inf are chosen only if there is no other score.
    outcome_PG: verdicts; right means > 1/2.
  Returns:
    float, NaN if nothing is known.
  Example:
    >>> score_PG = np.array([[1., 2.], [3., 0.], [np.nan, 1.]])
    >>> best_of_n.best_of_n(score_PG, np.array([[0., 1.], [0., 1.], [1., np.nan]]))
    0.5
  """
  score_PG = np.where(np.isnan(score_PG), -np.inf, score_PG)
  chosen_P = np.take_along_axis(
      np.asarray(outcome_PG), np.argmax(score_PG, axis=1)[:, None], axis=1)[:, 0]
  return accuracy.mean(chosen_P[~np.isnan(chosen_P)] > 0.5)


def scores(steps_BJ: np.ndarray) -> dict[str, np.ndarray]:
  """{aggregate: score_B} of the log-odds that steps are right.

  `score` by min, sum, last and mean, and log prod_j sigmoid(step_j) as "product".
  """
  by_aggregate = {a: score(steps_BJ, a) for a in ("min", "sum", "last", "mean")}
  # A sum of logs, because products of many small numbers would all be 0.
  with np.errstate(invalid="ignore"):  # NaN where there is no step.
    log_probs_BJ = -np.logaddexp(0, -np.asarray(steps_BJ))
  return by_aggregate | dict(product=score(log_probs_BJ, "sum"))


def weights(scores_: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  """{aggregate: weight_B}: the result of `scores` as probabilities, weights of a vote."""
  return {a: np.exp(s) if a == "product" else 1 / (1 + np.exp(-np.clip(s, -80, None)))
          for a, s in scores_.items()}


def at_n(proxy_G: np.ndarray, gold_G: np.ndarray, n: int) -> tuple[float, float]:
  """Expected scores of one prompt's best of n by a proxy, over all sets of n completions.

    gold(n) = sum_{i=n}^{N} C(i-1, n-1) / C(N, n) gold_(i)    i: rank by proxy, N completions

  Source: WebGPT, Nakano et al. 2021, arXiv:2112.09332. Differs from the paper: one of
  equal proxies is chosen at random (in expectation); completions with an unknown proxy or gold
  score are excluded.

  Args:
    proxy_G: scores by which one is chosen.
    gold_G: the scores of interest, such as verdicts.
    n: size of a set.
  Returns:
    (proxy, gold) of the chosen one, NaN with fewer than n completions.
  Raises:
    ValueError: n < 1.
  Example:
    >>> best_of_n.at_n(np.array([1., 2., 3.]), np.array([0., 1., 0.]), 2)
    (2.6666..., 0.3333...)
    >>> best_of_n.at_n(np.array([1., 1.]), np.array([0., 1.]), 2)
    (1.0, 0.5)
    >>> best_of_n.at_n(np.array([-np.inf, 1., 2.]), np.array([1., 0., np.nan]), 2)
    (1.0, 0.0)
  """
  if n < 1: raise ValueError(f"n={n!r}: must be >= 1.")
  proxy_G, gold_G = np.asarray(proxy_G, float), np.asarray(gold_G, float)
  known_G = ~np.isnan(proxy_G) & ~np.isnan(gold_G)
  proxy_G, gold_G = proxy_G[known_G], gold_G[known_G]
  if n > len(proxy_G): return math.nan, math.nan
  values, tied_G = np.unique(proxy_G, return_inverse=True)
  last = np.cumsum(np.bincount(tied_G))  # completions up to each distinct proxy
  # Probability that the best proxy is at most this one, then that it is this one.
  below = np.array([math.comb(int(i), n) for i in last]) / math.comb(len(proxy_G), n)
  chance = np.diff(below, prepend=0.0)
  means = np.bincount(tied_G, gold_G) / np.bincount(tied_G)
  return float(chance[chance > 0] @ values[chance > 0]), float(chance @ means)
