import math

import numpy as np
import pytest

from rlx.rewards import step_labels
from tests import whole

step_labels = whole.compile_module(step_labels)

nan = np.nan
VALUES = np.array([[.5, .25, 0., .5], [1., .9, nan, nan], [nan] * 4, [0., .5, 0., 0.]])
MASK = np.array([[True] * 4, [True, True, False, False], [False] * 4, [True] * 4])


@pytest.mark.parametrize("kind, expected", [
    ("hard", [[1, 1, 0, 1], [1, 1, 0, 0], [0] * 4, [0, 1, 0, 0]]),
    ("soft", [[.5, .25, 0, .5], [1, .9, 0, 0], [0] * 4, [0, .5, 0, 0]]),
    ("until_first_zero", [[1, 1, 0, 0], [1, 1, 0, 0], [0] * 4, [0] * 4]),
    ("monotone", [[1, 1, 1, 1], [1, 1, 0, 0], [0] * 4, [1, 1, 0, 0]]),
    # .25 < .8 * .5; nothing right is left after a 0; .5 after 0 has risen.
    ("relative", [[1, 0, 0, 1], [1, 1, 0, 0], [0] * 4, [0, 1, 0, 0]])])
def test_labels_from_values(kind, expected):
  got = step_labels.from_values(VALUES, MASK, kind=kind)
  np.testing.assert_allclose(got, expected, rtol=1e-6)


def test_relative_to_the_prompt():
  start_B = np.array([1., .5, nan, 0.])
  got = step_labels.from_values(VALUES, MASK, start_B, kind="relative")
  np.testing.assert_array_equal(got[:, 0], [0, 1, 0, 0])  # .5 < .8 * 1.
  got = step_labels.from_values(VALUES, MASK, kind="relative", threshold=.5)
  np.testing.assert_array_equal(got[0], [1, 1, 0, 1])
  with pytest.raises(ValueError, match="kind='mc': one of"):
    step_labels.from_values(VALUES, MASK, kind="mc")


def test_consensus():
  labels_BJ = np.array([[1., 0., 1.], [1., 1., nan], [1., 0., 0.], [1., 1., 0.], [nan] * 3])
  judged_BJ = np.array([[1., 0., 0.], [1., 1., 0.], [0., 1., 1.], [1., 1., 1.], [nan] * 3])
  mask_BJ = np.array([[1, 1, 1], [1, 1, 0], [1, 1, 1], [1, 1, 1], [0, 0, 0]], bool)
  np.testing.assert_array_equal(step_labels.first_error(labels_BJ, mask_BJ), [1, -1, 1, 2, -1])
  # Same step; none twice; another step; an error and none; no steps.
  np.testing.assert_array_equal(step_labels.consensus(labels_BJ, judged_BJ, mask_BJ),
                                [True, True, False, False, False])


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 8, 33])
def test_bisection_finds_every_first_error(steps):
  for error in range(steps):
    asked = []
    def is_open(k):
      asked.append(k)
      return k <= error     # The first `error` steps are right.
    assert step_labels.bisect_first_error(is_open, steps) == error
    assert len(asked) <= math.ceil(math.log2(steps))
    assert all(0 < k < steps for k in asked)


def test_bisection_refuses():
  with pytest.raises(ValueError, match="steps=0: must be >= 1"):
    step_labels.bisect_first_error(lambda k: True, 0)
