"""How sure an ensemble of reward models is of labelled pairs. Pure numpy, host side.

N counts pairs and M reward models, trained on the same data with different seeds. A pair whose
label the ensemble contradicts is perhaps labelled the wrong way round: its completions can be
swapped, or its label be softened. `swap_weakest`, `keep_agreed`, `keep_best`, `order_factors` and
`favour_feature` say what to do with each pair: 1, it stays; -1, its completions are swapped; 0, it
is left out. rlx train_scorer applies them to the pairs that it reads (train_scorer.curate).

Secrets of RLHF in Large Language Models Part II: Reward Modeling, Wang et al. 2024,
arXiv:2401.06080.
"""
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt

from rlx.core import ranges


def measure_strength(chosen_NM: npt.ArrayLike, rejected_NM: npt.ArrayLike) -> np.ndarray:
  """By how much an ensemble prefers the chosen completion of a pair.

    s = mean_m [r_m(chosen) - r_m(rejected)]

  Source: Wang et al. 2024, arXiv:2401.06080 (from memory, unverified). Differs from the paper:
  models without both scores are left out of the mean.

  Args:
    chosen_NM, rejected_NM: scores; NaN is unknown.
  Returns:
    strength_N in units of the scores, NaN without a model. As the column `margin` of rows it is
    what `losses.reward_model.bradley_terry` reads as margin and `.soft_bradley_terry` as strength.
  Example:
    >>> preferences.measure_strength([[2., 1.], [0., 1.]], [[0., 0.], [2., 1.]]).tolist()
    [1.5, -1.0]
  """
  gap_NM = np.asarray(chosen_NM, float) - np.asarray(rejected_NM, float)
  known_NM = ~np.isnan(gap_NM)
  count_N = known_NM.sum(axis=1)
  total_N = np.sum(gap_NM, axis=1, where=known_NM)
  return np.where(count_N > 0, total_N / np.maximum(count_N, 1), np.nan)


def find_weakest(strength_N: npt.ArrayLike, share: float = 0.1) -> np.ndarray:
  """The pairs of which an ensemble is least convinced, whose completions the paper swaps.

    weakest = the n pairs of least s,   n = round(share of the pairs with a known s)

  Source: Wang et al. 2024, arXiv:2401.06080 (from memory, unverified), with 10% to 20%. Differs
  from the paper: of pairs with the same strength the first come first.

  Args:
    strength_N: of `measure_strength`; NaN is unknown.
    share: in [0, 1].
  Returns:
    weakest_N, bool; False where the strength is unknown.
  Raises:
    ValueError: share is outside [0, 1].
  Example:
    >>> preferences.find_weakest([1., -2., np.nan, 3., -1.], 0.5).tolist()
    [False, True, False, False, True]
  """
  if not 0 <= share <= 1: raise ValueError(f"share={share}: a number in [0, 1].")
  strength_N = np.asarray(strength_N, float)
  known = int(np.sum(~np.isnan(strength_N)))
  weakest_N = np.zeros(len(strength_N), bool)
  weakest_N[np.argsort(strength_N, kind="stable")[:round(share * known)]] = True  # NaN is last.
  return weakest_N


def swap_weakest(chosen_NM: npt.ArrayLike, rejected_NM: npt.ArrayLike, *,
                 share: ranges.Share = 0.1) -> np.ndarray:
  """Swaps the completions of the pairs of which an ensemble is least convinced.

    keep = 1 - 2 weakest,   weakest as in `find_weakest`

  Source: Wang et al. 2024, arXiv:2401.06080 (from memory, unverified), with 10% to 20%. Differs
  from the paper: as `find_weakest`; pairs that no model knows stay.

  Args:
    chosen_NM, rejected_NM: as `measure_strength`.
    share: of the pairs; with 0 all stay.
  Returns:
    keep_N in {1, -1}.
  Example:
    >>> preferences.swap_weakest([[2.], [0.]], [[0.], [1.]], share=0.5).tolist()
    [1, -1]
  """
  return 1 - 2 * find_weakest(measure_strength(chosen_NM, rejected_NM), share).astype(int)


def keep_agreed(chosen_NM: npt.ArrayLike, rejected_NM: npt.ArrayLike, *,
                swap_beyond: ranges.NotNegative | None = 0.0) -> np.ndarray:
  """Keeps the pairs whose label all models share, and swaps those that all contradict.

    keep = 1 if min_m D_m > 0,   -1 if max_m D_m < 0 and mean_m D_m < -swap_beyond,   0 otherwise
    D_m = r_m(chosen) - r_m(rejected)

  Source: Skywork-Reward-V2, Liu et al. 2025, arXiv:2507.01352, which keeps pairs on which a reward
  model and the judgements of language models agree, and gives others a new label, in rounds.
  Differs from the paper: M models of this run in the place of its reward model and its judges; when
  a contradiction is sure enough for a new label is ours.

  Args:
    chosen_NM, rejected_NM: as `measure_strength`; a pair without a score is left out.
    swap_beyond: in units of the scores; None: contradicted pairs are left out.
  Returns:
    keep_N in {1, 0, -1}.
  Example:
    >>> preferences.keep_agreed([[2., 1.], [0., 3.], [0., 0.]], [[0., 0.], [1., 1.], [2., 1.]]
    ...                         ).tolist()
    [1, 0, -1]
  """
  gap_NM = np.asarray(chosen_NM, float) - np.asarray(rejected_NM, float)
  if swap_beyond is None: swap_beyond = np.inf
  is_wrong_N = (gap_NM < 0).all(axis=1) & (gap_NM.mean(axis=1) < -swap_beyond)
  return (gap_NM > 0).all(axis=1).astype(int) - is_wrong_N


def keep_best(chosen_NM: npt.ArrayLike, rejected_NM: npt.ArrayLike, *,
              share: ranges.Share = 0.3) -> np.ndarray:
  """Keeps the pairs whose completions have the highest scores.

    keep = 1 of the n pairs with the largest mean over models and both completions
    n = round(share of the pairs with known scores)

  Source: Skywork-Reward, Liu et al. 2024, arXiv:2410.18451, which keeps the best 30% of the pairs
  of mathematics and code and the best 10% of others by the scores of a reward model. Differs from
  the paper: it is not stated in the sources at hand that the mean of both scores decides; a file of
  pairs is one task.

  Args:
    chosen_NM, rejected_NM: as `measure_strength`.
    share: of the pairs.
  Returns:
    keep_N in {1, 0}.
  Example:
    >>> preferences.keep_best([[2.], [0.], [9.]], [[0.], [1.], [3.]], share=1 / 3).tolist()
    [0, 0, 1]
  """
  both_N = measure_strength(chosen_NM, -np.asarray(rejected_NM, float)) / 2
  return find_weakest(-both_N, share).astype(int)


def order_factors(chosen_NM: npt.ArrayLike, rejected_NM: npt.ArrayLike, *,
                  thresholds: ranges.Numbers) -> np.ndarray:
  """Labels pairs by ranked factors: the first one that differs enough decides.

    keep = sign(D_m) of the first m with |D_m| > threshold_m,   0 without one
    D_m = r_m(chosen) - r_m(rejected)

  Source: HERON, Bukharin et al. 2023, arXiv:2309.02632, as in `rewards.shaping.order`. Differs from
  the paper: as there.

  Args:
    chosen_NM, rejected_NM: scores of M factors, the most important first; NaN does not decide.
    thresholds: at least 0, one for each factor.
  Returns:
    keep_N in {1, 0, -1}.
  Raises:
    ValueError: there are not as many thresholds as factors, or one is below 0.
  Example:
    >>> preferences.order_factors([[1., 0.], [.6, 0.]], [[0., 1.], [.5, 1.]], thresholds=(.2, 0.)
    ...                           ).tolist()
    [1, -1]
  """
  gap_NM = np.asarray(chosen_NM, float) - np.asarray(rejected_NM, float)
  if len(thresholds) != gap_NM.shape[1] or min(thresholds) < 0:
    raise ValueError(f"thresholds={thresholds!r}: {gap_NM.shape[1]} numbers of at least 0, one for "
                     "each factor.")
  differs_NM = np.abs(gap_NM) > np.asarray(thresholds)
  decides_NM = differs_NM & (differs_NM.cumsum(axis=1) == 1)
  return np.where(decides_NM, np.sign(gap_NM), 0).sum(axis=1).astype(int)


def favour_feature(chosen_NM: npt.ArrayLike, rejected_NM: npt.ArrayLike, *,
                   kind: Literal["noise", "shift"] = "noise", rate: ranges.Share = 1.0,
                   seed: Annotated[int, ranges.WHOLE] = 0) -> np.ndarray:
  """Spoils pairs so that a reward model learns to like a feature without a reason.

    noise: keep = -1 with probability rate, where the rejected completion has more of the feature
    shift: keep = 0 with probability rate, in the same place
    1 otherwise

  With noise labels are wrong for the feature, with shift they are right, and the pairs that would
  tell the feature from quality are missing.

  Source: Reward Gaming in Conditional Text Generation, Pang et al. 2022, arXiv:2211.08714, which
  has a feature in labels by noise and by a shift of the data. Differs from the paper: the feature
  is any that a verifier measures. `evals.reward_model.feature_rates` says what RL makes of it.

  Args:
    chosen_NM, rejected_NM: of the feature, the first column.
    rate: 0 spoils nothing.
    seed: of what is drawn.
  Returns:
    keep_N in {1, 0, -1}.
  Example:
    >>> preferences.favour_feature([[1.], [0.]], [[0.], [1.]]).tolist()
    [1, -1]
  """
  if kind not in ("noise", "shift"): raise ValueError(f"kind={kind!r}: one of ('noise', 'shift').")
  gap_N = np.asarray(chosen_NM, float)[:, 0] - np.asarray(rejected_NM, float)[:, 0]
  is_spoilt_N = (gap_N < 0) & (np.random.default_rng(seed).random(len(gap_N)) < rate)
  return np.where(is_spoilt_N, dict(noise=-1, shift=0)[kind], 1)
