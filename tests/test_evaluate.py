import numpy as np
import pytest

from rlx import evaluate

nan = np.nan


def test_at_k():
  outcome_PG = np.array([[0, 1, 1, 0], [0, 0, 0, 1.]])
  answers = ["a", "b", "b", "c", None, "x", "x", "y"]
  scores = {"sum": np.array([1, 0, 2, 3, 0, 1, 2, 9.])}
  found = evaluate.at_k(outcome_PG, answers, scores)
  assert found["pass@1"] == pytest.approx((2 / 4 + 1 / 4) / 2)
  # One of two: 1 - C(2,2)/C(4,2) = 5/6 and 1 - C(3,2)/C(4,2) = 1/2.
  assert found["pass@2"] == pytest.approx((5 / 6 + 1 / 2) / 2)
  assert found["pass@4"] == 1
  # Four answers: b (right) wins the first, x (wrong) the second.
  assert found["maj@4"] == .5 and found["maj@1"] == 0
  # Highest score among all: the fourth of each; among two: first, second.
  assert found["best@4/sum"] == .5 and found["best@2/sum"] == 0
  assert "best@8/sum" not in found
