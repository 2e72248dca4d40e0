import types

import numpy as np
import pytest

from rlx.rollouts import trajectories


def test_pairs_are_trajectories_of_one_action():
  tokenizer = types.SimpleNamespace(pad_id=9)
  r = trajectories.pairs([[1, 2, 3], [4]], [[5], [6, 7]], tokenizer, 3, 4)
  assert r.tokens_BS.tolist() == [[9, 1, 2, 3, 5, 9, 9], [9, 9, 9, 4, 6, 7, 9]]
  assert r.prompt_width == 4 and r.prompt_len_B.tolist() == [3, 1]
  assert r.action_BT.tolist() == r.mask_BT.tolist() == [[True, False, False], [True, True, False]]
  assert r.positions_BS[0].tolist() == [0, 0, 1, 2, 3, 4, 5] and r.turn_BT is None


def test_actions_and_observations_in_turn():
  r = trajectories.rows(
      [[1], [1, 2]],
      [[("action", [3, 4]), ("observation", [5]), ("action", [6])], [("action", [7])]],
      prompt_width=2, width=5, pad_id=0, logps=[[-1, -2, -3], [-4]])
  assert r.tokens_BS.tolist() == [[0, 1, 3, 4, 5, 6, 0], [1, 2, 7, 0, 0, 0, 0]]
  assert r.turn_BT.tolist() == [[0, 0, -1, 1, -1], [0, -1, -1, -1, -1]]
  assert r.completion_len_B.tolist() == [4, 1]
  np.testing.assert_array_equal(r.action_BT, [[1, 1, 0, 1, 0], [1, 0, 0, 0, 0]])
  np.testing.assert_array_equal(r.sampler_logps_BT, [[-1, -2, 0, -3, 0], [-4, 0, 0, 0, 0]])


@pytest.mark.parametrize("segments, width, message", [
    ([("tool", [1])], 2, "A segment of kind 'tool': one of"),
    ([("action", [1, 2, 3])], 2, "A completion has 3 tokens; at most 2")])
def test_refusals(segments, width, message):
  with pytest.raises(ValueError, match=message):
    trajectories.rows([[1]], [segments], prompt_width=1, width=width, pad_id=0)
