import itertools

import numpy as np
import pytest

from rlx.evals import best_of_n
from rlx.evals import pass_at_k

nan = np.nan


def test_steps():
  ratio_BT = np.array([[nan, 1., 2., -4.], [nan, 3., nan, nan]])
  mask_BT = np.array([[False, True, True, True], [False, True, False, False]])
  values_BJ = best_of_n.step_values(ratio_BT, mask_BT, np.array([[2, 3], [1, -1]]), scale=0.5)
  np.testing.assert_allclose(values_BJ, [[1.5, -.5], [1.5, nan]])
  rewards_BJ = best_of_n.step_rewards(values_BJ)
  np.testing.assert_allclose(rewards_BJ, [[1.5, -2], [1.5, nan]])
  np.testing.assert_allclose(best_of_n.score(rewards_BJ), [-2, 1.5])
  np.testing.assert_allclose(best_of_n.score(rewards_BJ, "sum"), [-.5, 1.5])
  np.testing.assert_allclose(best_of_n.score(rewards_BJ, "last"), [-2, 1.5])
  np.testing.assert_allclose(best_of_n.score(np.full((1, 2), nan)), [-np.inf])
  with pytest.raises(ValueError, match="aggregate='mean': one of"):
    best_of_n.score(rewards_BJ, "mean")


def test_best_of_n():
  # Right; wrong; the chosen one is unknown and the prompt is left out.
  got = best_of_n.best_of_n(np.array([[1., 2.], [3., 0.], [nan, 1.]]),
                            np.array([[0., 1.], [0., 1.], [1., nan]]))
  assert got == 0.5


def test_votes():
  assert pass_at_k.majority(["a", "b", "b", None, None, None]) == "b"
  assert pass_at_k.majority(["a", "b"]) == "a"       # The first of a tie.
  assert pass_at_k.majority([None]) is None
  # sigmoid(3) > sigmoid(0) + sigmoid(-1).
  assert best_of_n.weighted_majority(["a", "b", "b"], [3., 0., -1.]) == "a"
  assert best_of_n.weighted_majority(["a", "b", "b"], [0., 0., -1.]) == "b"
  assert pass_at_k.maj_at_k(["a", "b", "b"], [1., 0., 0.], 1) == 1.0
  assert pass_at_k.maj_at_k(["a", "b", "b"], [1., 0., 0.], 3) == 0.0
  with pytest.raises(ValueError, match="k=4 must be in 1..3"):
    pass_at_k.maj_at_k(["a", "b", "b"], [1., 0., 0.], 4)


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_counts_subsets(k):
  outcome = [1., 0., 0., 1., 0.]
  subsets = list(itertools.combinations(outcome, k))
  want = np.mean([max(s) for s in subsets])
  np.testing.assert_allclose(pass_at_k.pass_at_k(np.array([outcome]), k), want)


def test_pass_at_k_leaves_out_what_is_unknown():
  outcome_PG = np.array([[1., nan, 0.], [0., nan, nan]])
  assert pass_at_k.pass_at_k(outcome_PG, 2) == 1.0    # The second has one verdict.
  assert pass_at_k.pass_at_k(outcome_PG, 1) == 0.25
  assert np.isnan(pass_at_k.pass_at_k(outcome_PG, 3))
  with pytest.raises(ValueError, match="k=0"): pass_at_k.pass_at_k(outcome_PG, 0)


def test_error_threshold():
  # Values around 0: sigmoid below 1/2 means negative.
  steps, labels = [[1., -1.], [1., 1.]], [1, -1]
  threshold, f1 = best_of_n.error_threshold(steps, labels, count=11)
  assert f1 == 1.0 and 0.2 < threshold < 0.8
  assert best_of_n.first_error([1., -1.], threshold) == 1
  assert best_of_n.first_error([1., 1.], threshold) == -1
