import pytest

from rlx.verifiers import steps


@pytest.mark.parametrize("text, separator, pieces", [
    ("one\n\ntwo\n\nthree", "\n\n", ["one\n\n", "two\n\n", "three"]),
    ("one\n\ntwo\n\n", "\n\n", ["one\n\n", "two\n\n"]),
    ("one\n\n\n\ntwo", "\n\n", ["one\n\n\n\n", "two"]),   # One end, not two.
    ("\n\none\n\ntwo", "\n\n", ["\n\none\n\n", "two"]),   # No empty first step.
    ("7;2;5#5", ";", ["7;", "2;", "5#5"]),
    ("a.b", ".", ["a.", "b"]),                            # Not a pattern.
    ("none", "\n\n", ["none"]),
    ("", "\n\n", []),
])
def test_boundaries(text, separator, pieces):
  ends = steps.boundaries(text, separator)
  assert [text[a:b] for a, b in zip([0] + ends, ends)] == pieces


@pytest.mark.parametrize("offsets, token_texts, indices", [
    ([2, 4, 7], ["7;", "2", ";", "5#5"], [0, 2, 3]),
    ([2, 4], ["7;2", ";5"], [0, 1]),        # The end is inside of a token.
    ([2, 4], ["7;2;", "5"], [0, 0]),        # Two ends in one token.
    ([2], ["7", "", ";", ""], [2]),         # Empty tokens (special ones) end nothing.
    ([], ["7;"], []),
])
def test_token_ends(offsets, token_texts, indices):
  assert steps.token_ends(offsets, token_texts) == indices
