"""How sure an ensemble of reward models is of labelled pairs. Pure numpy, host side.

N counts pairs and M reward models, trained on the same data with different seeds. A pair whose
label the ensemble contradicts is perhaps labelled the wrong way round: its completions can be
swapped, or its label be softened.

Secrets of RLHF in Large Language Models Part II: Reward Modeling, Wang et al. 2024,
arXiv:2401.06080.
"""
import numpy as np
import numpy.typing as npt


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
