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


def test_which_pairs_are_kept_and_which_way_round():
  """All models agree, all contradict, by little and by much, they differ, and one is unknown."""
  chosen_NM = np.array([[2., 1.], [0., 0.], [0., 0.], [1., 0.], [nan, 1.]])
  rejected_NM = np.array([[1., 0.], [.5, .25], [3., 2.], [0., 2.], [0., 0.]])
  of = lambda fn, **options: getattr(preferences, fn)(chosen_NM, rejected_NM, **options).tolist()
  assert of("keep_agreed") == [1, -1, -1, 0, 0]
  assert of("keep_agreed", swap_beyond=1.) == [1, 0, -1, 0, 0]
  assert of("keep_agreed", swap_beyond=None) == [1, 0, 0, 0, 0]
  # Strengths 1, -.375, -2.5, -.5 and, of one model, 1.
  assert of("swap_weakest", share=.4) == [1, 1, -1, -1, 1]
  # Means of both completions: 1, .1875, 1.25, .75, .5.
  assert of("keep_best", share=.4) == [1, 0, 1, 0, 0]


def test_pairs_by_ranked_factors_and_by_a_feature():
  """The first factor decides beyond .2, else the second; the last pair has neither."""
  chosen_NM = np.array([[1., 0.], [.5, 1.], [.5, 0.], [.5, .5], [0., 1.]])
  rejected_NM = np.array([[0., 1.], [.6, 0.], [.4, .5], [.5, .5], [1., 0.]])
  got = preferences.order_factors(chosen_NM, rejected_NM, thresholds=(.2, 0.))
  assert got.tolist() == [1, 1, -1, 0, -1]
  with pytest.raises(ValueError, match=r"thresholds=\(0.2,\): 2 numbers of at least 0"):
    preferences.order_factors(chosen_NM, rejected_NM, thresholds=(.2,))
  of = lambda **options: preferences.favour_feature(chosen_NM, rejected_NM, **options).tolist()
  assert of() == [1, -1, 1, 1, -1] and of(kind="shift") == [1, 0, 1, 1, 0]
  assert of(rate=0.) == [1] * 5
  many = preferences.favour_feature(np.zeros((4000, 1)), np.ones((4000, 1)), rate=.25, seed=3)
  assert np.mean(many == -1) == pytest.approx(.25, abs=.03)  # A standard error is 0.007.


def test_a_share_is_one():
  with pytest.raises(ValueError, match=r"share=1.5: a number in \[0, 1\]"):
    preferences.find_weakest([1.], 1.5)
