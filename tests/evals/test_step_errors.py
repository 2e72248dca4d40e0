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


def test_tune_returns_the_best_threshold():
  rng = np.random.default_rng(0)
  steps_BJ = rng.normal(size=(12, 4))
  steps_BJ[3:6, 2:] = nan
  label_B = rng.integers(-1, 2, 12)
  threshold, f1 = step_errors.tune(steps_BJ, label_B, count=101)
  def expected_f1(t):
    def first(row):
      return next((j for j, x in enumerate(row) if 1 / (1 + np.exp(-x)) < t), -1)
    right = np.array([first(row) for row in steps_BJ]) == label_B
    a, b = right[label_B >= 0].mean(), right[label_B < 0].mean()
    return 2 * a * b / (a + b) if a + b else 0
  every = [expected_f1(i / 100) for i in range(101)]
  assert f1 == pytest.approx(max(every)) and f1 > 0
  assert threshold == pytest.approx(int(np.argmax(every)) / 100)
  assert np.isnan(step_errors.tune(steps_BJ[:1], [0])).all()


def test_each_half_is_predicted_with_the_threshold_of_the_other():
  # Steps of the first half separate at 0, those of the second at 2: in each, the
  # threshold of the other half sees an error everywhere, or nowhere.
  steps_BJ = np.array([[1., -1.], [1., 1.], [3., 1.], [3., 3.]])
  label_B, fold_B = np.array([1, -1, 1, -1]), np.array([True, True, False, False])
  assert step_errors.crossed(steps_BJ, label_B, fold_B).tolist() == [0, 0, -1, -1]
  # With equal halves the threshold of one is right for the other.
  steps_BJ[2:] -= 2
  assert step_errors.crossed(steps_BJ, label_B, fold_B).tolist() == label_B.tolist()
  # The second half has no solution with an error: no threshold for the first.
  got = step_errors.crossed(steps_BJ, [1, -1, -1, -1], fold_B)
  assert np.isnan(got[:2]).all() and not np.isnan(got[2:]).any()
