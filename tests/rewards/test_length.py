import numpy as np
import pytest

from rlx.rewards import length
from tests import whole

length = whole.compile_module(length)

nan = np.nan
OUTCOME_B = np.array([1., 1., 0., 0., 1., nan])
LENGTHS_B = np.array([0, 5, 5, 10, 10, 3])
VALID_B = ~np.isnan(OUTCOME_B)


def test_cosine():
  # Right: 2 at 0, (2 + 1) / 2 halfway; wrong: (-10 + 0) / 2 halfway; the limit is -10.
  np.testing.assert_allclose(
      length.cosine(OUTCOME_B, LENGTHS_B, VALID_B, max_length=10),
      [2, 1.5, -5, -10, -10, 0], atol=1e-6)
  # A quarter of the way, (1 + cos(pi / 4)) / 2 of the start is left.
  got = length.cosine(np.array([1., 0.]), np.array([3, 3]), np.array([True, True]),
                      max_length=12, right=(1., .5), wrong=(0., -.5), exceeded=-2.)
  left = (1 + np.sqrt(.5)) / 2
  np.testing.assert_allclose(got, [.5 + .5 * left, -.5 + .5 * left], rtol=1e-6)


def test_surrogate():
  scores_BE = np.array([[1., 1.], [1., 0.], [1., 1.], [0., 1.], [0., 1.], [nan, nan]])
  lengths_B = np.array([10, 5, 20, 10, 20, 4])
  got = length.surrogate(scores_BE, lengths_B, np.arange(6) < 5, max_length=20)
  # Best at half of L_max: 1 + 1. x = 1/4: .5 + 1 - 1/4. x = 1: 1 + 1 - 2.
  # Nothing to read: a good length is worth 0, a bad one what it costs.
  np.testing.assert_allclose(got, [2, 1.25, 0, 0, -1, 0], atol=1e-6)


def test_the_buffer_is_within_the_length():
  with pytest.raises(ValueError, match="buffer=5: at most max_length=4"):
    length.overlong(LENGTHS_B, VALID_B, max_length=4, buffer=5)
