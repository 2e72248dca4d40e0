import numpy as np
import pytest

from rlx.rollouts import filter_groups

nan = np.nan


@pytest.mark.parametrize("outcomes, kept", [
    ([1, 0, 0, 0, 0], True),    # 0.2, the lower edge.
    ([1, 1, 1, 1, 0], True),    # 0.8, the upper edge.
    ([1, 1, 1, 1, 1], False),
    ([0, 0, 0, 0, 0], False),
    ([nan, 1, 1, 1, 1], False),  # All that is known is right.
    ([nan, 1, 1, 1, 0], True),
    ([nan] * 5, False),
])
def test_accuracy_band(outcomes, kept):
  outcome_PG = np.array([outcomes])
  out = filter_groups.accuracy_band(outcome_PG, ~np.isnan(outcome_PG), np.ones((1, 5), int),
                                    low=0.2, high=0.8)
  assert out.tolist() == [kept]


def test_band_edges_survive_float32():
  outcome_PG = np.full((1, 4), np.float32(0.8), np.float32)  # 0.800000012
  assert filter_groups.accuracy_band(outcome_PG, outcome_PG > 0, np.ones((1, 4), int)).all()


def test_truncated_groups_can_be_dropped():
  outcome_PG = np.array([[1., 0.], [1., 0.]])
  finish_PG = np.array([[1, 0], [1, 2]])  # Index 0 of records.FINISH is "length".
  out = filter_groups.accuracy_band(outcome_PG, outcome_PG >= 0, finish_PG, drop_truncated=True)
  assert out.tolist() == [False, True]


def test_groups_without_a_verdict_are_dropped():
  learn_PG = np.array([[True, True], [False, True], [False, False]])
  assert filter_groups.with_verdict(learn_PG).tolist() == [True, True, False]


@pytest.mark.parametrize("options, kept", [
    (dict(low=2.0), [True, False, True, False]), (dict(high=2.0), [True, True, False, False]),
    (dict(least_std=0.9), [True, False, False, False]), (dict(), [True, True, True, False])])
def test_score_band(options, kept):
  # Means 2, 1, 3; stds 1, 1/2 and 0, as what is unknown does not count; none is known.
  scores_PG = np.array([[1., 3.], [.5, 1.5], [3., nan], [nan, nan]])
  assert filter_groups.score_band(scores_PG, ~np.isnan(scores_PG), **options).tolist() == kept


def test_fill_takes_kept_first_in_order():
  keep_P = np.array([False, True, False, True, True])
  assert filter_groups.fill(keep_P, 4).tolist() == [1, 3, 4, 0]
