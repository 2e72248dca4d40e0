import math

import numpy as np
import pytest

from rlx.evals import calibration


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
