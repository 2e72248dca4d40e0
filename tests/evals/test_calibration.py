import math

import numpy as np
import pytest

from rlx.evals import accuracy
from rlx.evals import calibration


def test_reliability_by_hand():
  """Two halves. In the lower one prompt 0 has (0.1, wrong), (0.3, right) and prompt 1
  (0.4, wrong): means over prompts are (0.2 + 0.4) / 2 and (1/2 + 0) / 2."""
  low, high = calibration.reliability(
      [0.1, 0.3, 0.4, 0.5, 1.0], [0, 1, 0, 1, 0.5], [0, 0, 1, 1, 1], bins=2)
  assert low["n"] == 3 and low["prompts"] == 2
  assert low["predicted"] == pytest.approx(0.3) and low["right"] == pytest.approx(0.25)
  expected = accuracy.interval(np.array([[0, 1], [0, np.nan]]))
  assert (low["low"], low["high"]) == (expected["low"], expected["high"])
  assert high == dict(low_edge=0.5, high_edge=1.0, n=2, prompts=1, predicted=0.75,
                      right=0.75, low=high["low"], high=high["high"])


def test_an_empty_bin_is_unknown():
  empty = calibration.reliability([0.9], [1], [0], bins=2)[0]
  assert empty["n"] == 0 and math.isnan(empty["predicted"]) and math.isnan(empty["right"])


def test_brier():
  assert calibration.brier([0.5, 0.5], [0, 1]) == 0.25
  assert calibration.brier([1.0, 0.25], [1, 1]) == 0.75**2 / 2
  assert math.isnan(calibration.brier([], []))
