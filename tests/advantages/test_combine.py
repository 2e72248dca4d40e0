import numpy as np

from rlx.advantages import combine
from rlx.core import records
from tests import whole

combine = whole.compile_module(combine)

nan = np.nan
MASK = np.array([[True, True, True], [True, False, False], [True, False, True], [False] * 3])


def scored(outcome=(1., 0., nan, 1.)):
  return records.Batch(action_BT=MASK, outcome_B=np.array(outcome), group=2)


def test_place():
  # On the last valid token; an empty row has none.
  np.testing.assert_array_equal(
      combine.place(np.array([1., 2., 3., 4.]), MASK),
      [[0, 0, 1], [2, 0, 0], [0, 0, 3], [0, 0, 0]])
  np.testing.assert_array_equal(
      combine.place(np.array([[1., nan, nan]] * 4),
                    MASK[:, :1] & (np.arange(3) == 0)[None]),
      [[1, 0, 0], [1, 0, 0], [1, 0, 0], [0, 0, 0]])


def test_spread_discounts_from_the_end():
  got = combine.spread(np.array([[1., 2.], [4., nan]]), MASK, gamma=0.5)
  np.testing.assert_allclose(got, [[.25, .5, 1], [2, 0, 0], [2, 0, 4], [0, 0, 0]])
  np.testing.assert_allclose(combine.spread(np.ones((2, 2)), MASK), MASK)


def test_estimators_may_read_both_forms():
  outcome = combine.with_rewards(scored(), np.array([1., 2., nan, nan]))
  np.testing.assert_array_equal(outcome.learn_PG, [[True, True], [False, False]])
  np.testing.assert_array_equal(outcome.rewards_BT[:2], [[0, 0, 1], [2, 0, 0]])
  dense = combine.with_rewards(scored(), np.ones((4, 3)))
  np.testing.assert_array_equal(dense.rewards_PG, [[3, 1], [0, 0]])
