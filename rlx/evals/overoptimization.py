"""What becomes of the gold score as a policy is optimised for a proxy. Pure numpy, host side.

Gao et al. 2022, arXiv:2210.10760.
"""
import math
from typing import Literal

import numpy as np
import numpy.typing as npt

Method = Literal["best_of_n", "rl"]


def compute_best_of_n_kl(n: int) -> float:
  """KL of the best of n from the distribution that the n are drawn from, in nats.

    KL = log n - (n - 1) / n

  Source: Stiennon et al. 2020, arXiv:2009.01325, appendix G.3; used by arXiv:2210.10760. Differs
  from the papers: nothing known. It is exact if no two completions have equal scores, else an
  upper bound (Beirami et al. 2024, arXiv:2401.01879).

  Example:
    >>> overoptimization.compute_best_of_n_kl(1), round(overoptimization.compute_best_of_n_kl(4), 4)
    (0.0, 0.6363)
  """
  return math.log(n) - (n - 1) / n


def fit(kl_K: npt.ArrayLike, gold_K: npt.ArrayLike, method: Method = "rl") -> dict[str, float]:
  """Fits the gold score against the distance d = sqrt(KL), by least squares.

    best_of_n: gold(d) - gold(0) = d (alpha - beta d)
    rl:        gold(d) - gold(0) = d (alpha - beta log d)

  beta > 0 means that the gold score falls again beyond the peak, d = alpha / (2 beta) or
  exp(alpha / beta - 1).

  Source: Gao et al. 2022, arXiv:2210.10760. Differs from the paper: gold(0) is the gold score at
  KL 0, or, where no point has it, that of the lowest KL.

  Args:
    kl_K: >= 0, nats; points with an unknown number are excluded.
    gold_K: mean gold score of the policy at each KL.
  Returns:
    dict(alpha, beta, peak_kl, error): the KL of the peak, inf where it only rises, 0 where it only
    falls; the root mean squared error. All NaN with fewer than two points beyond the first.
  Example:
    >>> fitted = overoptimization.fit([0., 1., 4., 9.], [0., 3., 4., 3.], "best_of_n")
    >>> {name: round(x, 6) for name, x in fitted.items()}
    {'alpha': 4.0, 'beta': 1.0, 'peak_kl': 4.0, 'error': 0.0}
  """
  points_2K = np.array([kl_K, gold_K], float)
  points_2K = points_2K[:, ~np.isnan(points_2K).any(axis=0)]
  all_K, gold = points_2K[:, np.argsort(points_2K[0], kind="stable")]
  d_K, gain_K = np.sqrt(all_K[all_K > 0]), (gold - gold[:1])[all_K > 0]
  if len(np.unique(d_K)) < 2: return dict.fromkeys(("alpha", "beta", "peak_kl", "error"), math.nan)
  bend_K = d_K**2 if method == "best_of_n" else d_K * np.log(d_K)
  terms_K2 = np.stack([d_K, -bend_K], axis=1)
  (alpha, beta), *_ = np.linalg.lstsq(terms_K2, gain_K, rcond=None)
  if beta <= 0: peak = math.inf if alpha > 0 or method == "rl" else 0.0
  elif method == "best_of_n": peak = max(alpha / (2 * beta), 0.0) ** 2
  else: peak = math.exp(min(2 * (alpha / beta - 1), 700.0))
  return dict(alpha=float(alpha), beta=float(beta), peak_kl=float(peak),
              error=float(np.sqrt(np.mean((terms_K2 @ [alpha, beta] - gain_K) ** 2))))


def compare_scorers(accuracy_K: npt.ArrayLike, gold_K: npt.ArrayLike) -> dict[str, float]:
  """At which accuracy of the reward model policies are best, over runs against K of them.

    best = argmax_k gold_k,   loss = gold_best - gold_(the most accurate)

  loss > 0 says that a less accurate reward model trained a better policy.

  Source: The Accuracy Paradox in RLHF, Chen et al. 2024, arXiv:2410.06554. Differs from the paper:
  it shows the curve; these numbers of it are ours.

  Args:
    accuracy_K: of the reward models on held-out pairs; of equal ones the first counts.
    gold_K: gold score of the policy after RL against each; NaN excludes a run.
  Returns:
    dict(accuracy, gold, loss, rank_correlation): accuracy and gold of the best run, and Spearman's
    rank correlation of the two, NaN with fewer than two runs or if one of them does not vary.
  Raises:
    ValueError: the lists differ in length, or no run is known.
  Example:
    >>> found = overoptimization.compare_scorers([.6, .7, .8, .9], [.3, .5, .4, .2])
    >>> {name: round(x, 2) for name, x in found.items()}
    {'accuracy': 0.7, 'gold': 0.5, 'loss': 0.3, 'rank_correlation': -0.4}
  """
  a_K, g_K = np.asarray(accuracy_K, float), np.asarray(gold_K, float)
  if a_K.shape != g_K.shape or a_K.ndim != 1:
    raise ValueError(f"accuracy_K {a_K.shape}, gold_K {g_K.shape}: one of each for a run.")
  known_K = ~np.isnan(a_K + g_K)
  a_K, g_K = a_K[known_K], g_K[known_K]
  if not len(g_K): raise ValueError("gold_K: no run has both numbers.")
  ranks = [(np.searchsorted(np.sort(x), x) + np.searchsorted(np.sort(x), x, "right")) / 2
           for x in (a_K, g_K)]  # Equal ones share the mean of their ranks.
  varies = all(np.ptp(x) > 0 for x in ranks)
  best, last = int(g_K.argmax()), int(a_K.argmax())
  return dict(accuracy=float(a_K[best]), gold=float(g_K[best]), loss=float(g_K[best] - g_K[last]),
              rank_correlation=float(np.corrcoef(*ranks)[0, 1]) if varies else math.nan)
