import numpy as np
import pytest

from rlx.evals import step_errors

nan = np.nan


def test_f1_of_processbench_rows():
  # With an error: predicted at 1, at 0 instead of 2, missed. Without: accepted, refused.
  got = step_errors.f1([1, 0, -1, -1, 2], [1, 2, 0, -1, -1])
  assert got == pytest.approx(dict(erroneous=1/3, correct=1/2, f1=2 * (1/6) / (5/6)))
  # A weight of 2 is as two copies, a weight of 0 as none.
  twice = step_errors.f1([1, 0, -1, -1, 2], [1, 2, 0, -1, -1], [2, 1, 0, 1, 3])
  assert twice == step_errors.f1([1, 1, 0, -1, 2, 2, 2], [1, 1, 2, -1, -1, -1, -1])
  assert step_errors.f1([0, -1], [1, -1])["f1"] == 0      # No error predicted where it is.
  assert step_errors.f1([0, 0], [1, -1])["f1"] == 0       # Neither: 0, not 0 / 0.
  assert np.isnan(step_errors.f1([0], [0])["f1"])         # Nothing without an error.
  assert np.isnan(step_errors.f1([nan, -1], [1, -1])["f1"])
  assert np.isnan(step_errors.tune(np.array([[1., nan]]), [0])).all()


def test_each_half_is_predicted_with_the_threshold_of_the_other():
  # Steps of the first half separate at 0, those of the second at 2: in each, the
  # threshold of the other half sees an error everywhere, or nowhere.
  steps_BJ = np.array([[1., -1.], [1., 1.], [3., 1.], [3., 3.]])
  label_B, fold_B = np.array([1, -1, 1, -1]), np.array([True, True, False, False])
  assert step_errors.cross_validate(steps_BJ, label_B, fold_B).tolist() == [0, 0, -1, -1]
  # With equal halves the threshold of one is right for the other.
  steps_BJ[2:] -= 2
  assert step_errors.cross_validate(steps_BJ, label_B, fold_B).tolist() == label_B.tolist()
  # The second half has no solution with an error: no threshold for the first.
  got = step_errors.cross_validate(steps_BJ, [1, -1, -1, -1], fold_B)
  assert np.isnan(got[:2]).all() and not np.isnan(got[2:]).any()
