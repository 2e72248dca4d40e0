import numpy as np
import pytest

from rlx.evals import support

nan = np.nan


def means(*args, **kwargs):
  return {name: x["mean"] for name, x in support.compare_support(*args, **kwargs).items()}


def test_counts_by_hand():
  # Solved before and after: 3 preserved, 1 gained, 2 lost, 1 outside; the last prompt is unknown.
  solved = [(1, 1)] * 3 + [(0, 1)] + [(1, 0)] * 2 + [(0, 0)]
  before_PG = [[0, b] for b, _ in solved] + [[nan, 1]]
  after_PG = [[a, 0, 0] for _, a in solved] + [[1, 1, 1]]
  got = means(before_PG, [row[:2] for row in after_PG], k=2)
  assert got == pytest.approx(dict(
      preserved=3/7, gained=1/7, lost=2/7, outside=1/7, retention=3/5, discovery=1/4,
      dynamic=2 * 3/5 * 1/4 / (3/5 + 1/4), change=-1/6))


def test_more_completions_than_k_give_expected_counts():
  # pass@1 is 1/2 before and 3/4 after.
  got = means([[1, 0]], [[1, 1, 1, 0]], k=1)
  assert got == pytest.approx(dict(
      preserved=3/8, gained=3/8, lost=1/8, outside=1/8, retention=3/4, discovery=1/2,
      dynamic=2 * 3/4 * 1/2 / (3/4 + 1/2), change=2/7))


@pytest.mark.parametrize("before, after, retention, discovery, dynamic, change", [
    (0, 0, nan, nan, nan, nan), (1, 0, 0, nan, nan, -1), (0, 1, nan, 1, nan, 1),
    (1, 1, 1, 0, 0, 0)])
def test_what_has_no_denominator_is_unknown(before, after, retention, discovery, dynamic, change):
  got = means([[before]], [[after]], k=1)
  np.testing.assert_equal([got[x] for x in ("retention", "discovery", "dynamic", "change")],
                          [retention, discovery, dynamic, change])


def test_nothing_is_kept_and_something_gained():
  assert means([[1], [0]], [[0], [1]], k=1)["dynamic"] == 0


def test_prompts_must_be_the_same():
  with pytest.raises(ValueError, match="2 prompts before and 1 after"):
    support.compare_support([[1], [1]], [[1]], k=1)
