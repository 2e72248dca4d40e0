import math

import numpy as np
import pytest

from rlx.evals import overoptimization

nan = np.nan


def test_kl_of_the_best_of_n_by_enumeration():
  """Of 400 completions with different scores, whose best of n is drawn with replacement."""
  for n in (1, 2, 4, 8):
    p_N = np.diff((np.arange(401) / 400) ** n)
    kl = np.sum(p_N * np.log(p_N * 400))
    assert overoptimization.compute_best_of_n_kl(n) == pytest.approx(kl, abs=0.01)
  assert overoptimization.compute_best_of_n_kl(1) == 0


@pytest.mark.parametrize("method, bend, peak", [
    ("best_of_n", lambda d: d, (2 / .5 / 2) ** 2),
    ("rl", lambda d: np.log(d), math.exp(2 * (2 / .5 - 1)))])
def test_coefficients_of_a_curve_of_the_form(method, bend, peak):
  kl_K = np.array([4., 0., 1., 9., 16., nan, 2.])
  d_K = np.sqrt(kl_K)
  with np.errstate(divide="ignore", invalid="ignore"):
    gold_K = 7 + np.where(d_K > 0, d_K * (2 - .5 * bend(d_K)), 0)
  got = overoptimization.fit(kl_K, gold_K, method)
  assert (got["alpha"], got["beta"]) == (pytest.approx(2), pytest.approx(.5))
  assert got["peak_kl"] == pytest.approx(peak) and got["error"] == pytest.approx(0, abs=1e-9)


def test_least_squares_by_a_grid():
  kl_K, gold_K = [0., 1., 2., 6., 12.], [.1, .5, .9, .8, .2]
  d_K, gain_K = np.sqrt(kl_K[1:]), np.array(gold_K[1:]) - .1
  alphas, betas = np.meshgrid(np.linspace(0, 2, 401), np.linspace(0, 1, 401), indexing="ij")
  errors = np.mean((d_K * (alphas[..., None] - betas[..., None] * d_K) - gain_K) ** 2, axis=-1)
  got = overoptimization.fit(kl_K, gold_K, "best_of_n")
  best = np.unravel_index(np.argmin(errors), errors.shape)
  assert got["alpha"] == pytest.approx(alphas[best], abs=.01)
  assert got["beta"] == pytest.approx(betas[best], abs=.01)
  assert got["error"] == pytest.approx(math.sqrt(errors.min()), abs=1e-4)


def test_curves_without_a_peak_and_without_points():
  assert overoptimization.fit([0., 1., 4.], [0., 1., 3.], "best_of_n")["peak_kl"] == math.inf
  assert overoptimization.fit([0., 1., 4.], [0., -1., -4.], "best_of_n")["peak_kl"] == 0
  assert all(map(math.isnan, overoptimization.fit([0., 1.], [0., 1.]).values()))
  assert all(map(math.isnan, overoptimization.fit([0., 1., nan], [0., nan, 1.]).values()))


def test_the_accuracy_at_which_policies_are_best():
  """Ranks 1 2 3.5 3.5 of accuracies and 1.5 4 1.5 3 of gold scores; an unknown run is left out."""
  got = overoptimization.compare_scorers([.6, .7, .8, .8, .9], [.2, .5, .2, .3, math.nan])
  a, b = np.array([1, 2, 3.5, 3.5]) - 2.5, np.array([1.5, 4, 1.5, 3]) - 2.5
  want = dict(accuracy=.7, gold=.5, loss=.3, rank_correlation=a @ b / np.sqrt((a @ a) * (b @ b)))
  assert got == pytest.approx(want)
  assert math.isnan(overoptimization.compare_scorers([.5, .5], [0., 1.])["rank_correlation"])
  with pytest.raises(ValueError, match="gold_K: no run has both numbers"):
    overoptimization.compare_scorers([.5], [math.nan])
  with pytest.raises(ValueError, match="one of each for a run"):
    overoptimization.compare_scorers([.5], [0., 1.])
