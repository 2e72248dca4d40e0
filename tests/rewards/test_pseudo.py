import numpy as np
import pytest

from rlx.rewards import pseudo
from tests import whole

pseudo = whole.compile_module(pseudo)

VALID_PG = np.array([[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [0, 0, 1, 1, 1],
                      [0, 0, 0, 0, 0]], bool)
ANSWER_PG = np.array([
    [4, 7, 7, 4, 7],       # 7 wins.
    [1, 2, 2, 1, -1],      # A tie: the one given first. No answer has no vote ...
    [-1, -1, -1, 3, -1],   # ... however many there are.
    [5, 5, 6, 6, 5],       # Votes of rows that are not valid do not count.
    [0, 0, 0, 0, 0]])


def test_majority():
  np.testing.assert_array_equal(
      pseudo.majority(ANSWER_PG, VALID_PG).reshape(5, 5),
      [[0, 1, 1, 0, 1], [1, 0, 0, 1, 0], [0, 0, 0, 1, 0], [0, 0, 1, 1, 0], [0] * 5])


def test_confident():
  # Means of log-probs, on tokens that learn: 3 for one certain completion against two at 1/4.
  answer_PG = np.array([[7, 3, 7, 3], [7, 7, 3, -1]])
  logps_BT = np.log(np.array([[.25, .25], [1, .64], [.25, .25], [.01, .01],
                              [.5, .5], [.5, .5], [.9, .1], [1, 1]]))
  learn_BT = np.ones((8, 2), bool)
  learn_BT[6, 1] = False  # .9, not sqrt(.09).
  learn_PG = np.ones((2, 4), bool)
  def rewards(**options):
    return pseudo.confident(answer_PG, logps_BT, learn_PG, learn_BT, **options).reshape(2, 4)
  np.testing.assert_array_equal(rewards(), [[0, 1, 0, 1], [1, 1, 0, 0]])
  np.testing.assert_array_equal(rewards(subgroups=2), [[0, 1, 1, 0], [1, 1, 1, 0]])
  learn_PG[0, 1] = False
  np.testing.assert_array_equal(rewards()[0], [1, 0, 1, 0])
  with pytest.raises(ValueError, match="subgroups=3: it has to divide the 4"): rewards(subgroups=3)


def test_paired():
  pair_P = np.array([1, 0, 4, 2, -1])
  answer_PG = np.array([
      [2, 7, 7, 4, 7],       # 2 is right: the label is of row 1.
      [1, 2, 2, 7, 7],       # A tie, 2 first; paid is 7, the majority of row 0.
      [3, 3, 3, 3, 3],       # Row 4 has no vote, and so no label.
      [3, -1, 6, 6, 3],      # Of row 2; the first two are not valid.
      [3, 3, 3, 3, 3]])      # Without another wording.
  pair_PG = np.broadcast_to(pair_P[:, None], (5, 5))
  np.testing.assert_array_equal(
      pseudo.paired(answer_PG, pair_PG, VALID_PG).reshape(5, 5),
      [[1, 0, 0, 0, 0], [0, 0, 0, 1, 1], [0] * 5, [0, 0, 0, 0, 1], [0] * 5])


def test_an_answer_that_is_missing_on_both_sides_is_no_agreement():
  rewards_B = pseudo.paired(np.full((2, 2), -1), np.array([[1, 1], [0, 0]]), np.ones((2, 2), bool))
  np.testing.assert_array_equal(rewards_B, [0] * 4)


def test_wrong_majority_pays_only_where_the_majority_is_wrong():
  nan = np.nan
  outcome_PG = np.array([[1, 0, 0, 1, 0], [1, 0, 0, 1, 0], [1, 1, 1, 0, 1],
                          [nan, nan, 1, 1, 0], [nan] * 5])
  np.testing.assert_array_equal(
      pseudo.wrong_majority(ANSWER_PG, outcome_PG, VALID_PG).reshape(5, 5),
      [[0, 1, 1, 0, 1], [0] * 5, [0, 0, 0, 1, 0], [0] * 5, [0] * 5])
