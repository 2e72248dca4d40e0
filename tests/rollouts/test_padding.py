import numpy as np
import pytest

from rlx.core import records
from rlx.rollouts import padding


def _rollouts(lengths, width, prompt_len=2):
  b = len(lengths)
  return records.Rollouts(
      tokens_BS=np.arange(b * (3 + width)).reshape(b, -1).astype(np.int32),
      prompt_len_B=np.full(b, prompt_len), completion_len_B=np.array(lengths),
      sampler_logps_BT=np.zeros((b, width), np.float32),
      finish_B=np.zeros(b, np.int32), prompt_P=np.arange(b, dtype=np.uint32))


def test_left_and_right_pad():
  tokens, lengths = padding.pad_left([[1, 2], [3]], 3, 9)
  assert tokens.tolist() == [[9, 1, 2], [9, 9, 3]] and lengths.tolist() == [2, 1]
  tokens, lengths = padding.pad_right([[1, 2], []], 3, 9)
  assert tokens.tolist() == [[1, 2, 9], [9, 9, 9]] and lengths.tolist() == [2, 0]


@pytest.mark.parametrize("ids", [[], [1, 2, 3, 4]])
def test_prompts_must_fit(ids):
  with pytest.raises(ValueError, match=r"1 to 3 \(prompts.max_tokens\)"):
    padding.pad_left([ids], 3, 0)


@pytest.mark.parametrize("lengths, width", [([0, 0], 4), ([4, 1], 4), ([5, 1], 8), ([10, 2], 10)])
def test_trim_keeps_every_token(lengths, width):
  out = padding.trim(_rollouts(lengths, 10), 4)
  assert out.sampler_logps_BT.shape[1] == width
  assert out.prompt_width == 3
  assert padding.completions(out) == padding.completions(_rollouts(lengths, 10))


def test_tokens_that_were_not_sampled_have_no_kept_ones():
  r = _rollouts([3, 1], 4).replace(kept_BTK=np.zeros((2, 4, 2), np.int32))
  stored = padding.put_last(r, [[5, 6]], finish=1)
  assert (stored.kept_BTK[0] == 0).all() and (stored.kept_BTK[1] == -1).all()
  longer = padding.append(r, 7).kept_BTK
  assert longer.shape == (2, 5, 2) and (longer[:, 4] == -1).all() and (longer[:, :4] == 0).all()
  assert padding.trim(r, 3).kept_BTK.shape == (2, 3, 2)


def test_masks_and_positions():
  r = _rollouts([2, 0], 3)
  assert r.mask_BT.tolist() == [[True, True, False], [False] * 3]
  assert r.valid_BS.astype(int).tolist() == [[0, 1, 1, 1, 1, 0], [0, 1, 1, 0, 0, 0]]
  assert r.positions_BS[0].tolist() == [0, 0, 1, 2, 3, 4]


def test_select_counts_rows_through():
  a, b = _rollouts([1, 2], 3), _rollouts([3, 0], 3)
  out = padding.select([a, b], np.array([2, 1]), np.array([2, 1]))
  assert out.completion_len_B.tolist() == [3, 2]
  assert out.prompt_P.tolist() == [0, 1]


def test_put_last_replaces_one_row_of_each_group():
  rollouts = _rollouts([4, 4, 3, 2], 4).replace(
      sampler_logps_BT=np.full((4, 4), -1.0, np.float32), finish_B=np.zeros(4, int))
  got = padding.put_last(rollouts, [[7, 8], [9]], 1)
  assert padding.completions(got)[1::2] == [[7, 8], [9]]
  assert padding.completions(got)[::2] == padding.completions(rollouts)[::2]
  np.testing.assert_array_equal(got.tokens_BS[:, :3], rollouts.tokens_BS[:, :3])
  assert got.completion_len_B.tolist() == [4, 2, 3, 1] and got.finish_B.tolist() == [0, 1, 0, 1]
  assert (got.sampler_logps_BT[1::2] == 0).all() and (got.sampler_logps_BT[::2] == -1).all()
  assert rollouts.completion_len_B.tolist() == [4, 4, 3, 2]  # A copy.


def test_append_follows_every_completion():
  r = _rollouts([1, 3], 3)
  out = padding.append(r, 9)
  assert padding.completions(out) == [ids + [9] for ids in padding.completions(r)]
  assert out.prompt_width == 3
  np.testing.assert_array_equal(out.tokens_BS[:, :3], r.tokens_BS[:, :3])
