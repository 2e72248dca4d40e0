import numpy as np
import pytest

from rlx.evals import best_of_n, pruning

nan = np.nan
# The dear scorer likes a wrong completion of the first prompt that the cheap one does not.
CHEAP_PG = [[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 1, nan]]
DEAR_PG = [[9, 2, 3, 1], [1, 2, 4, 3], [nan, 8, nan, 9]]
OUTCOME_PG = [[0, 0, 1, 0], [1, 0, 1, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize("options, right, calls, speed", [
    # Of the second prompt, whose completions are all below 1, the first one stays.
    (dict(least=1), [1, 1, 1], (2 + 1 + 2) / 3, 4 / (5 / 3)),
    # Kept are completions 1, 2; 0, 1; and 0, 2.
    (dict(keep=2, cost=1/8), [1, 0, 1], 2, 4 / (4/8 + 2)),
    (dict(keep=1), [0, 1, 1], 1, 4),
    (dict(), [0, 1, 0], 4, 1),
    (dict(keep=9, cost=1), [0, 1, 0], 4, 1/2)])
def test_by_hand(options, right, calls, speed):
  got = pruning.prune_and_rank(CHEAP_PG, DEAR_PG, OUTCOME_PG, **options)
  assert (got["accuracy"]["mean"], got["calls"], got["speed"]) == pytest.approx(
      (np.mean(right), calls, speed))
  assert (got["cheap"]["mean"], got["dear"]["mean"]) == pytest.approx((2/3, 1/3))


def test_each_alone_is_best_of_n():
  draw = np.random.default_rng(0)
  cheap_PG, dear_PG = draw.integers(3, size=(2, 50, 6))
  outcome_PG = draw.choice([0, 1, nan], size=(50, 6))
  got = pruning.prune_and_rank(cheap_PG, dear_PG, outcome_PG)
  for name, score_PG in dict(accuracy=dear_PG, dear=dear_PG, cheap=cheap_PG).items():
    assert got[name]["mean"] == pytest.approx(best_of_n.best_of_n(score_PG, outcome_PG))
  one = pruning.prune_and_rank(cheap_PG, dear_PG, outcome_PG, keep=1)
  assert one["accuracy"] == got["cheap"] != got["dear"] and got["accuracy"]["prompts"] < 50


@pytest.mark.parametrize("shapes, keep, message", [
    ([(1, 2), (1, 2), (1, 2)], 0, "keep=0 must be >= 1"),
    ([(1, 2), (1, 3), (1, 2)], 1, r"shapes \(1, 2\), \(1, 3\) and \(1, 2\)")])
def test_bad_input(shapes, keep, message):
  with pytest.raises(ValueError, match=message):
    pruning.prune_and_rank(*map(np.zeros, shapes), keep=keep)
