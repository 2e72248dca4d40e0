import math

import numpy as np
import pytest

from rlx.evals import program_tests

# Which of 4 wrong programs fail which of 4 tests: two tests are equal, one is passed by all.
FAILS_WT = np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 0]])


def measure(fails_WT, right_RT=()):
  rows = [*(1 - np.asarray(fails_WT)), *right_RT]
  return program_tests.measure_suite(rows, [0] * len(fails_WT) + [1] * len(right_RT))


def test_by_hand():
  got = measure(FAILS_WT, [[1, 1, 1, 1], [1, 1, 1, 0]])
  # Variances 1/4, 1/4, 1/4, 0; covariances 1/4 of the equal pair, -1/4 of two pairs, 0 of three.
  rho = (2 * (1/4 - 1/4 - 1/4) / 12) / (3/16)
  # All are found by the first 3 tests: of the three trapezoids 0, 1/2 and 1.
  assert got == pytest.approx(dict(
      detection=1, verifier_accuracy=1, auc=1/2, single=6/16, patterns=2, diversity=2/4,
      correlation=rho, effective=4 / (1 + 3 * rho), accepted=1/2))


def test_equal_tests_count_as_one_and_independent_ones_as_all():
  same = measure([[1, 1, 1], [0, 0, 0]])
  assert (same["effective"], same["correlation"], same["patterns"]) == pytest.approx((1, 1, 1))
  assert same["detection"] == 1/2 and same["verifier_accuracy"] == same["auc"] == 0
  every = measure([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)])
  assert (every["effective"], every["correlation"], every["patterns"]) == pytest.approx((3, 0, 3))
  # What correlated tests detect, by the effective number of them.
  assert every["detection"] == pytest.approx(1 - (1 - every["single"]) ** every["effective"])


def test_what_is_unknown():
  only_right = measure(np.zeros((0, 2)), [[1, 1]])
  assert only_right.pop("accepted") == 1 and all(map(math.isnan, only_right.values()))
  one = measure([[1], [1]])
  assert one["auc"] == 1 and math.isnan(one["correlation"]) and math.isnan(one["accepted"])


@pytest.mark.parametrize("passes_NT, right_N, message", [
    ([[1, np.nan]], [0], "must be 0 or 1"), ([[1, 0]], [0, 1], r"shape \(1, 2\) and right_N \(2,"),
    ([[]], [0], "at least one test")])
def test_bad_input(passes_NT, right_N, message):
  with pytest.raises(ValueError, match=message): program_tests.measure_suite(passes_NT, right_N)


def test_means_over_problems():
  got = program_tests.average_suites([measure(FAILS_WT), measure([[0, 0]], [[1, 1]])])
  assert got["detection"]["mean"] == 1/2 and got["detection"]["prompts"] == 2
  assert got["accepted"]["mean"] == 1 and got["accepted"]["prompts"] == 1
  assert program_tests.average_suites([]) == {}
