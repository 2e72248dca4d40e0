import math

from rlx.evals import calibration


def test_an_empty_bin_is_unknown():
  empty = calibration.reliability([0.9], [1], [0], bins=2)[0]
  assert empty["n"] == 0 and math.isnan(empty["predicted"]) and math.isnan(empty["right"])
  assert math.isnan(calibration.brier([], []))
