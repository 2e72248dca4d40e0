import types

import pytest

from rlx.loops import annotations

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
  assert annotations.split(ids, TOKENIZER, separator) == expected
