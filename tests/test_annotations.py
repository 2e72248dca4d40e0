import types

import numpy as np
import pytest

from rlx.core import records
from rlx.stages import host_fields

# A tokenizer whose tokens are longer than a character; 0 is the EOS.
PIECES = ["", "think", "ing", "#", "#7", "7", "</", "th", "ink>", ">7"]
TOKENIZER = types.SimpleNamespace(
    eos_ids=(0,), pieces=lambda ids: [PIECES[i] for i in ids],
    encode=lambda text, add_bos: [PIECES.index(text)])


@pytest.mark.parametrize("ids, separator, expected", [
    ([1, 2, 3, 5, 0], "#", ([1, 2, 3], 3, 4)),
    # The last one, wherever others stand.
    ([3, 5, 3, 5, 5], "#", ([3, 5, 3], 3, 5)),
    # "#7" would tell the answer: only its "#" is kept.
    ([1, 4, 5, 0], "#", ([1, 3], 1, 3)),
    ([4], "#", ([3], 0, 1)),
    # Over several tokens.
    ([1, 6, 7, 8, 5], "</think>", ([1, 6, 7, 8], 4, 5)),
    # No answer: all is reasoning, without the EOS.
    ([1, 2, 0], "#", ([1, 2], 2, 2)),
    ([1, 3, 5, 0], None, ([1, 3, 5], 3, 3)),
    ([1, 3, 0], "#", ([1, 3], 2, 2)),  # An empty answer.
    ([], "#", ([], 0, 0)),
    ([0], None, ([], 0, 0)),
])
def test_split(ids, separator, expected):
  assert host_fields.split(ids, TOKENIZER, separator) == expected


@pytest.mark.parametrize("max_error_rate", [0.5, 0.1])
def test_a_list_of_rewards_has_one_for_each_step(max_error_rate):
  """Rows with an unknown reward, or with another number of rewards, do not learn."""
  action_BT = np.ones((5, 3), bool)
  def step_rewards():
    return host_fields.step_rewards_BTZ(
        [[0, 2], [1, 1], [0, 2], [2], [0, 1]], None, ["a;b", "c;d", "e;f", "g", "h;i"],
        types.SimpleNamespace(sampler_logps_BT=action_BT),
        lambda path, *_: [[-1.0, 2.0], [3.0, 4.0], [1.0, np.nan], [1.0, 1.0], -2.0],
        verifiers=("mine:steps",), max_error_rate=max_error_rate)
  if max_error_rate < 0.25:
    with pytest.raises(ValueError, match="for 1 of 5 completions, such as 'g', which has 1; "):
      step_rewards()
    return
  rewards_BTZ = step_rewards()
  np.testing.assert_array_equal(rewards_BTZ[[0, 1, 4], :, 0], [[-1, 0, 2], [0, 7, 0], [-2, -2, 0]])
  batch = records.Batch(action_BT=action_BT, outcome_B=np.ones(5), step_rewards_BTZ=rewards_BTZ)
  np.testing.assert_array_equal(batch.learn_B, [True, True, False, False, True])
