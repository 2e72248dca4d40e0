import math

import numpy as np
import pytest
from scipy import stats

from rlx.evals import calibration

nan = math.nan


def test_an_empty_bin_is_unknown():
  empty = calibration.reliability([0.9], [1], [0], bins=2)[0]
  assert empty["n"] == 0 and math.isnan(empty["predicted"]) and math.isnan(empty["right"])
  assert math.isnan(calibration.brier([], []))


def test_the_expected_error_by_bins():
  draw = np.random.default_rng(0)
  p_B = np.concatenate([draw.uniform(size=300), [0., 1., .5]])
  outcome_B = np.float64(draw.uniform(size=303) < p_B**2)
  gap = 0.0
  for k in range(10):
    rows = [i for i, p in enumerate(p_B) if k / 10 <= p < (k + 1) / 10 or (k == 9 and p == 1)]
    gap += len(rows) / 303 * abs(np.mean(p_B[rows]) - np.mean(outcome_B[rows]))
  assert calibration.compute_expected_error(p_B, outcome_B) == pytest.approx(gap)
  assert gap > .1 and np.isnan(calibration.compute_expected_error([], []))


def test_isotonic_regression_is_the_minimum_of_maxima():
  draw = np.random.default_rng(0)
  score_L, gold_L = draw.integers(12, size=60), draw.uniform(size=60)
  value_L = calibration.calibrate(score_L, score_L, gold_L)
  for x, value in zip(score_L, value_L):
    means = [[gold_L[(a <= score_L) & (score_L <= b)].mean() for b in range(x, 12)]
             for a in range(x + 1)]
    assert value == pytest.approx(max(map(min, means)))
  assert value_L.mean() == pytest.approx(gold_L.mean()) and len(set(value_L)) > 2
  assert np.isnan(calibration.calibrate([nan], score_L, gold_L)).all()


@pytest.mark.parametrize("gold_L, value_L", [
    ([2, 1, 3], [1.5, 1.5, 3]), ([3, 2, 1], [2, 2, 2]), ([0, 2, 1], [0, 1.5, 1.5]),
    ([0, 3, 1.5, 0], [0, 1.5, 1.5, 1.5])])
def test_isotonic_regression_by_hand(gold_L, value_L):
  score_L = range(len(gold_L))
  np.testing.assert_allclose(calibration.calibrate(score_L, score_L, gold_L), value_L)
  # Labelled twice, and in another order.
  score_L, gold_L = [*score_L][::-1] * 2, gold_L[::-1] * 2
  np.testing.assert_allclose(calibration.calibrate(score_L, score_L, gold_L), value_L[::-1] * 2)


def test_a_mean_of_labels_by_hand():
  # Folds {0, 2} and {1, 3}; the last completion, of the first prompt, has no label.
  got = calibration.estimate_mean([1, 2, 3, 4, 9], [0, 0, 1, 1, nan], ["a", "b", "c", "d", "a"],
                                  folds=2)
  # Without a fold: [0, 0, 1/2, 1, 1] and [0, 1/2, 1, 1, 1]. Used are 0, 1/2, 1/2, 1, and by all 1.
  s2 = 4/3 * (.2**2 + .1**2 + .1**2 + .4**2) / 5**2
  c2 = 1/2 * (.1**2 + .1**2)
  freedom = (s2 + c2) ** 2 / (s2**2 / 3 + c2**2 / 1)
  half = stats.t.ppf(.975, freedom) * math.sqrt(s2 + c2)
  assert got == pytest.approx(dict(mean=.6, low=.6 - half, high=.6 + half, raw=3.8, labels=4,
                                   sampling=math.sqrt(s2), calibration=math.sqrt(c2)))


def test_the_interval_of_a_lenient_judge_has_the_mean_that_its_scores_miss():
  hits, only_sampling = 0, 0
  for seed in range(60):
    draw = np.random.default_rng(seed)
    p_N = draw.uniform(size=400)
    gold_N = np.float64(draw.uniform(size=400) < p_N)  # Mean 1/2.
    score_N = np.round(10 * p_N**.3 + draw.normal(size=400))
    got = calibration.estimate_mean(
        score_N, np.where(np.arange(400) < 60, gold_N, nan), np.arange(400))
    hits += got["low"] <= .5 <= got["high"]
    only_sampling += abs(got["mean"] - .5) <= 1.96 * got["sampling"]
  assert hits >= 51 and only_sampling <= 42


@pytest.mark.parametrize("score_N, gold_N, folds, message", [
    ([1, 2], [0, nan], 5, "folds=5 and 1 prompts with labels"), ([1, 2], [0, 1], 1, "folds=1 and"),
    ([1, nan], [0, 1], 2, "score_N has NaN")])
def test_too_few_labels(score_N, gold_N, folds, message):
  with pytest.raises(ValueError, match=message):
    calibration.estimate_mean(score_N, gold_N, range(2), folds=folds)
  with pytest.raises(ValueError, match="0 labelled scores"): calibration.calibrate([1], [], [])
