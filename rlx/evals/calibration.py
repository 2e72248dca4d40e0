"""Calibration of a PRM or judge: what it predicts against verdicts. Pure numpy, host side."""
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


def calibrate(score_N: npt.ArrayLike, score_L: npt.ArrayLike, gold_L: npt.ArrayLike) -> np.ndarray:
  """Scores of a judge on the scale of gold labels, by isotonic regression.

    f = argmin over non-decreasing f of sum_l (gold_l - f(score_l))^2

  The mean of f over the labelled scores is the mean of their labels. Between labelled scores f is
  linear, beyond them constant.

  Source: pool adjacent violators, Ayer et al. 1955, which Causal Judge Evaluation uses,
  arXiv:2512.11150. Differs from it: nothing known.

  Args:
    score_N: what is to be calibrated; NaN stays NaN.
    score_L, gold_L: the labelled scores, in any order; with equal scores the mean label counts.
  Returns:
    value_N.
  Raises:
    ValueError: no label; NaN among the labelled.
  Example:
    >>> calibration.calibrate([0., 2., 2.5, 9.], score_L=[1., 2., 3., 4.], gold_L=[0., 1., 0., 1.])
    array([0. , 0.5, 0.5, 1. ])
  """
  score_L, gold_L = np.asarray(score_L, float), np.asarray(gold_L, float)
  if not len(score_L) or np.isnan(score_L).any() or np.isnan(gold_L).any():
    raise ValueError(f"{len(score_L)} labelled scores: give at least one, each with a label, and "
                     "no NaN.")
  score_K, at_L = np.unique(score_L, return_inverse=True)
  blocks: list[tuple[float, int, int]] = []  # Sum of labels, how many, of how many scores.
  for total, count in zip(np.bincount(at_L, gold_L).tolist(), np.bincount(at_L).tolist()):
    blocks.append((total, count, 1))
    while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
      (a, b, c), (x, y, z) = blocks.pop(), blocks.pop()
      blocks.append((a + x, b + y, c + z))
  value_K = np.repeat([total / count for total, count, _ in blocks], [k for *_, k in blocks])
  return np.interp(np.asarray(score_N, float), score_K, value_K)


def estimate_mean(score_N: npt.ArrayLike, gold_N: npt.ArrayLike, group_N: npt.ArrayLike, *,
                  folds: int = 5) -> dict[str, float]:
  """The mean gold label of completions that a judge has scored, of which few have a label.

    V     = mean_n f_n(score_n)    f_n: `calibrate` by all labels; for a labelled completion, by
                                   those outside its own fold
    se^2  = s^2 + c^2    s^2 = G / (G - 1) sum_g (sum of f_n(score_n) - V over prompt g)^2 / N^2
                         c^2 = (K - 1) / K sum_k (V_k - mean V_k)^2
    V_k   = mean_n f(score_n), f by the labels outside fold k;   K folds, G prompts
    interval = V +- t se, the 95% one of Student's t with
               (s^2 + c^2)^2 / (s^4 / (G - 1) + c^4 / (K - 1)) degrees of freedom

  The mean of raw scores measures what the judge likes; its interval ignores that the judge errs,
  and is as narrow as the number of scores makes it. c is what few labels leave open. The labelled
  completions have to be a random part of all.

  Source: Causal Judge Evaluation, Landesberg 2025, arXiv:2512.11150, the estimate from own samples
  of each policy, with the released code. Differs from it: completions without a label use all
  labels, the degrees of freedom are those of Satterthwaite 1946, and scores alone are used: without
  further properties such as length, and without its estimates from samples of another policy.

  Args:
    score_N: of the judge.
    gold_N: labels, such as verdicts by people or in [0, 1]; NaN where there is none.
    group_N: equal for completions of one prompt. Prompts with labels are put into folds in their
      order, which is to be random.
    folds: K, at least 2; fewer if fewer prompts have labels.
  Returns:
    dict(mean, low, high, raw, labels, sampling, calibration): raw is the mean score, labels the
    number of them, and the last two are s and c.
  Raises:
    ValueError: a score is NaN; fewer than two prompts have labels; folds < 2.
  Example:
    >>> got = calibration.estimate_mean([1., 2., 3., 4.], [0., 0., 1., 1.], range(4), folds=2)
    >>> got["mean"], got["raw"], got["labels"]
    (0.5, 2.5, 4)
  """
  from scipy import special  # Of nothing else here. pylint: disable=g-import-not-at-top
  score_N, gold_N = np.asarray(score_N, float), np.asarray(gold_N, float)
  at_N = np.unique(np.asarray(group_N), return_inverse=True)[1]
  is_labelled_N = ~np.isnan(gold_N)
  labelled = list(dict.fromkeys(at_N[is_labelled_N].tolist()))  # Prompts, in order.
  if np.isnan(score_N).any(): raise ValueError("score_N has NaN: leave out what has no score.")
  if folds < 2 or len(labelled) < 2:
    raise ValueError(f"folds={folds} and {len(labelled)} prompts with labels: give at least two.")
  folds, count, groups = min(folds, len(labelled)), len(score_N), int(at_N.max()) + 1
  fold_G = np.full(groups, -1)
  fold_G[labelled] = np.arange(len(labelled)) % folds
  fold_N = np.where(is_labelled_N, fold_G[at_N], -1)  # -1: no label.
  fit = lambda used_N: calibrate(score_N, score_N[used_N], gold_N[used_N])
  without_KN = np.stack([fit(is_labelled_N & (fold_N != k)) for k in range(folds)])
  value_N = np.where(is_labelled_N, without_KN[fold_N, np.arange(count)], fit(is_labelled_N))
  mean = float(value_N.mean())
  sum_G = np.bincount(at_N, value_N - mean)
  sampling = groups / (groups - 1) * float(sum_G @ sum_G) / count**2
  calibration = (folds - 1) * float(without_KN.mean(axis=1).var())
  freedom = (sampling + calibration) ** 2 / (
      sampling**2 / (groups - 1) + calibration**2 / (folds - 1)) if sampling + calibration else 1.0
  half = float(special.stdtrit(freedom, 0.975)) * (sampling + calibration) ** 0.5
  return dict(mean=mean, low=mean - half, high=mean + half, raw=float(score_N.mean()),
              labels=int(is_labelled_N.sum()), sampling=sampling**0.5, calibration=calibration**0.5)
