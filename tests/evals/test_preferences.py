import numpy as np
import pytest

from rlx.evals import preferences

nan = np.nan


def test_strengths():
  """Of three models, of the two that are known, and of none."""
  chosen_NM = [[1., 2., 3.], [0., nan, 2.], [nan, 1., nan]]
  rejected_NM = [[0., 0., 9.], [1., 5., 4.], [0., nan, nan]]
  np.testing.assert_array_equal(preferences.measure_strength(chosen_NM, rejected_NM),
                                [(1 + 2 - 6) / 3, (-1 - 2) / 2, nan])


@pytest.mark.parametrize("share, weakest", [(0, ()), (.25, (3,)), (.5, (1, 3)), (.75, (1, 2, 3)),
                                            (1, (0, 1, 2, 3))])
def test_the_weakest(share, weakest):
  """Unknown ones are neither counted nor weak, and of equal ones the first comes first."""
  strength_N = [2., 0., 0., -1., nan, nan]
  assert np.flatnonzero(preferences.find_weakest(strength_N, share)).tolist() == list(weakest)


def test_a_share_is_one():
  with pytest.raises(ValueError, match=r"share=1.5: a number in \[0, 1\]"):
    preferences.find_weakest([1.], 1.5)
