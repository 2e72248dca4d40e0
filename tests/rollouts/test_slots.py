"""Plans of which rows are decoded together."""
import numpy as np
import pytest

from rlx.rollouts import slots


def following(plan, running_W, steps):
  """The plan after that of a single device."""
  plans = slots.plan_next([plan], running_W, np.array([steps]))
  return plans and plans[0]


def test_start_takes_what_fits():
  plan = slots.start(4, 2, slots=6)
  assert plan.row_W.tolist() == [0, 1, 2, 3, 4, 5] and plan.waiting == 6
  assert plan.prompt_P.tolist() == [0, 1, 2] and plan.columns == 0
  assert slots.start(4, 2).prompt_P is None  # All prompts, as they lie.


@pytest.mark.parametrize("rows, group, free, slots_", [
    (12, 4, 400, None),   # 12 rows of 10 bytes are 0.3 of 400.
    (12, 4, 399, 8),
    (12, 4, 266, 4),      # 0.3 of 266 is less than 8 rows.
    (12, 4, 10, 4),       # A group is the least,
    (12, 4, -5, 4),       # also where the state alone is too large.
    (12, 1, 350, 10),
    (12, 4, None, None)])
def test_slots_that_fit(rows, group, free, slots_):
  assert slots.count_fitting(rows, group, 10, free) == slots_


def test_half_the_slots_as_soon_as_half_suffice():
  plan = slots.start(4, 2)
  assert following(plan, np.arange(8) < 5, 3).is_same
  running_W = np.isin(np.arange(8), [1, 2, 6, 7])
  plan_after = following(plan, running_W, 3)
  assert plan_after.row_W.tolist() == [1, 2, 6, 7] and plan_after.source_W.tolist() == [1, 2, 6, 7]
  assert plan_after.prompt_P.tolist() == [0, 1, 3, 3]  # Groups of two would need six slots.
  assert plan_after.columns == 3 and plan_after.count_W.tolist() == [3] * 4
  pairs = following(plan, np.isin(np.arange(8), [2, 3, 6, 7]), 3)
  assert pairs.prompt_P.tolist() == [1, 3]        # Here they fit.


def test_waiting_rows_take_free_slots():
  plan = slots.start(3, 2, slots=4)
  plan_after = following(plan, np.array([True, False, False, True]), 5)
  assert plan_after.row_W.tolist() == [0, 3, 4, 5] and plan_after.waiting == 6
  assert plan_after.source_W.tolist() == [0, 3, -1, -1]
  assert plan_after.count_W.tolist() == [5, 5, 0, 0]
  assert plan_after.prompt_P.tolist() == [0, 1, 2, 2]
  after = following(plan_after, np.array([False, True, True, True]), 5)
  assert after.is_same and after.row_W.tolist() == [6, 3, 4, 5]
  assert after.count_W[after.live_W].tolist() == [10, 5, 5] and after.columns == 10
  assert following(after, np.zeros(4, bool), 5) is None


def test_devices_have_plans_of_equal_shapes():
  """Each device moves its own rows; the number of slots and of groups suits all of them."""
  plans = [slots.start(4, 2)] * 2
  running_W = np.r_[np.isin(np.arange(8), [2, 3]), np.isin(np.arange(8), [0, 3, 5])]
  left, right = slots.plan_next(plans, running_W, np.array([3, 5]))
  # Alone, the left one would have a group of two.
  assert left.row_W.tolist() == [2, 3, 8, 8] and right.row_W.tolist() == [0, 3, 5, 8]
  assert left.prompt_P.tolist() == [1, 1, 0, 0] and right.prompt_P.tolist() == [0, 1, 2, 0]
  assert (left.columns, right.columns) == (3, 5)
  left, right = slots.plan_next([left, right], np.r_[[False] * 4, [True] * 3, False],
                                np.array([2, 2]))
  assert left.is_same and right.is_same and not left.live_W.any()
  assert right.count_W[right.live_W].tolist() == [7, 7, 7]
  assert slots.plan_next([left, right], np.zeros(8, bool), np.array([1, 1])) is None


def test_enough_is_when_the_next_plan_differs():
  plan = slots.start(4, 2)
  assert plan.enough == 4 == len(following(plan, np.arange(8) < 4, 3).row_W)
  assert slots.start(3, 1).enough == 0        # Three slots are the least.
  assert slots.start(4, 2, slots=4).enough == 3  # One is free for those that wait.
  assert slots.start(2, 2, slots=4).enough == 0


@pytest.mark.parametrize("slots_, n, size", [
    (64, 64, 64), (64, 33, 64), (64, 32, 32), (64, 3, 4), (64, 1, 4), (12, 6, 6),
    (12, 1, 3), (3, 1, 3)])
def test_smallest(slots_, n, size):
  assert slots.find_smallest(n, slots_) == size


def test_every_row_is_decoded_to_its_end():
  """Random lengths against a plain count, for any number of slots."""
  for seed in range(30):
    rng = np.random.default_rng(seed)
    p, g, chunk = rng.integers(1, 6), rng.integers(1, 5), rng.integers(1, 5)
    length_B = rng.integers(1, 20, p * g)
    limit = None if seed % 3 == 0 else int(g * rng.integers(1, p + 1))
    plan, done_B = slots.start(p, g, limit), np.zeros(p * g, int)
    while plan is not None:
      assert len(plan.row_W) <= (limit or p * g)
      live = plan.row_W[plan.live_W]
      assert len(set(live)) == len(live)
      np.testing.assert_array_equal(plan.count_W[plan.live_W], done_B[live])
      if plan.prompt_P is not None:
        per = len(plan.row_W) // len(plan.prompt_P)
        of_slot_W = np.repeat(plan.prompt_P, per)
        np.testing.assert_array_equal(of_slot_W[plan.live_W], live // g)
      assert len(live) > plan.enough  # Or nothing would be drawn, for ever.
      left = length_B[live] - done_B[live]
      steps = next(s for s in range(1, chunk + 1) if s == chunk or (left > s).sum() <= plan.enough)
      running_W = np.zeros(len(plan.row_W), bool)
      running_W[plan.live_W] = left > steps
      done_B[live] += np.minimum(left, steps)
      plan = following(plan, running_W, steps)
    np.testing.assert_array_equal(done_B, length_B)
