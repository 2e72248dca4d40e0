import numpy as np
import pytest

from rlx.core import records, resolve
from rlx.rollouts import select_completions

nan = np.nan


def test_truncated():
  length, eos, stop = range(3)  # As in records.FINISH.
  got = select_completions.truncated(np.array([[length, eos, stop], [eos, length, length]]))
  assert got.tolist() == [[False, True, True], [True, False, False]]
  scored = records.Batch(action_BT=None, outcome_B=None, group=2,
                          finish_B=np.array([length, eos, stop, length]))
  fn = resolve.resolve("rollouts", dict(name="select_completions.truncated"))
  assert fn(scored).tolist() == [[False, True], [True, False]]


def test_prof_steps():
  # Means 1/2, 3/4 and 1 of right completions, of 2, 2 and 1 known steps; 0 without one.
  steps_BT = np.array([[0, 1, 9], [1, 9, .5], [nan, 9, 1], [9, 9, 9]])
  ends_BT = np.array([[1, 1, 0], [1, 0, 1], [1, 0, 1], [0, 0, 0]], bool)
  got = select_completions.prof_steps(np.ones((1, 4)), steps_BT, ends_BT, np.ones((1, 4), bool),
                                      count=2)
  assert got.tolist() == [[False, True, True, False]]


def test_superior():
  """Rows 0 and 1 are a pair, 0 with reasoning; 2 and 3 one without a known answer at once."""
  outcome_PG = np.array([[.5, .4, 1, nan], [1, 0, .5, nan], [nan] * 4, [0, .1, nan, 1]])
  learn_PG = ~np.isnan(outcome_PG)
  pair_PG = np.repeat([[1], [0], [3], [2]], 4, axis=1)
  bare_PG = np.repeat([[0], [1.], [1.], [0]], 4, axis=1)
  got = select_completions.superior(outcome_PG, pair_PG, bare_PG, learn_PG)
  assert got.tolist() == [[True, False, True, False], [False] * 4, [False] * 4,
                          [True, True, False, True]]
  # Equal ones count although a mean of float32 is not exact.
  same_PG = np.full((2, 3), .1, np.float32)
  got = select_completions.superior(same_PG, np.array([[1] * 3, [0] * 3]),
                                    np.array([[0.] * 3, [1.] * 3]), np.ones((2, 3), bool))
  assert got.tolist() == [[True] * 3, [False] * 3]


def test_agreed():
  got = select_completions.agreed(np.array([[.1, .3, nan, .2]]), np.array([[True] * 3 + [False]]),
                                  most=.2)
  assert got.tolist() == [[True, False, False, False]]


def test_everything():
  assert select_completions.everything(np.array([[1., nan]])).all()


@pytest.mark.parametrize("outcome, scores, options, kept", [
    # Two of each: the best of the right ones (0, 2), the worst of the wrong (4, 5).
    ([1, 1, 1, 0, 0, 0], [.9, .1, .5, .9, .1, .5], dict(count=4), [0, 2, 4, 5]),
    # An odd one goes to the right; with one right, the rest is wrong.
    ([1, 1, 1, 0, 0, 0], [.9, .1, .5, .9, .1, .5], dict(count=3), [0, 2, 4]),
    ([1, 0, 0, 0, 0, 0], [.1, .9, .8, .7, .6, .5], dict(count=4), [0, 3, 4, 5]),
    ([1, 1, 1, 1, 1, 0], [.1, .9, .8, .7, .6, .5], dict(count=4), [1, 2, 3, 5]),
    ([0] * 6, [.1, .9, .8, .7, .6, .5], dict(count=2), [0, 5]),
    # Wrong ones as they come.
    ([1, 1, 1, 0, 0, 0], [.9, .1, .5, .9, .1, .5], dict(count=4, side="right"), [0, 2, 3, 4]),
    # What could not be told is left out first.
    ([nan, 1, 1, 0, 0, 0], [.9, .1, .5, .9, nan, .5], dict(count=4), [1, 2, 3, 5]),
    ([nan, 1, nan, nan, nan, nan], [.5] * 6, dict(count=4), [1]),
], ids=["even", "odd", "few_right", "few_wrong", "none_right", "right_only", "unknown", "short"])
def test_prof(outcome, scores, options, kept):
  outcome, scores = np.array([outcome], float), np.array([scores])
  got = select_completions.prof(outcome, scores, ~np.isnan(outcome + scores), **options)
  assert np.flatnonzero(got[0]).tolist() == kept


def test_prof_is_per_group():
  got = select_completions.prof(np.array([[1., 1., 0.], [0., 0., 1.]]),
                                np.array([[.1, .2, .3]] * 2), np.ones((2, 3), bool), count=2)
  assert got.tolist() == [[False, True, True], [True, False, True]]


@pytest.mark.parametrize("kind, kept", [
    ("best_worst", [1, 3]), ("best_random", [0, 1]), ("best", [1])])
def test_extremes(kind, kept):
  scores_PG = np.array([[.5, .9, nan, .2, .9]])
  got = select_completions.extremes(scores_PG, ~np.isnan(scores_PG), kind=kind)
  assert np.flatnonzero(got[0]).tolist() == kept
  assert not select_completions.extremes(scores_PG, np.zeros((1, 5), bool), kind=kind).any()
  # The other one is another one, also where the best comes first.
  first = select_completions.extremes(np.array([[.9, .5, .5]]), np.ones((1, 3), bool), kind=kind)
  assert np.flatnonzero(first[0]).tolist() == ([0] if kind == "best" else [0, 1])
  lone = select_completions.extremes(scores_PG, np.arange(5)[None] == 3, kind=kind)
  assert np.flatnonzero(lone[0]).tolist() == [3]


def test_refuses_a_count_above_the_group():
  ones_PG = np.ones((2, 3))
  with pytest.raises(ValueError, match="^count=4: at most rollouts.per_prompt=3"):
    select_completions.prof(ones_PG, ones_PG, ones_PG > 0, count=4)
