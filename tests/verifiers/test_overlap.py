"""BLEU by hand."""
import pytest

from rlx.verifiers import overlap


@pytest.mark.parametrize("answer, reference, expected", [
    ("221", "221", 1), ("", "221", 0), ("221", "", 0), ("345", "221", 0),
    # Precisions 3/3, (1 + 1)/(2 + 1) and (0 + 1)/(1 + 1).
    ("212", "221", (1 * 2/3 * 1/2) ** (1/3)),
    # A brevity penalty, and no 3-grams, of which the answer has none.
    ("22", "221", 2.718281828 ** (1 - 3/2)),
    # A character matches as often as it is in the reference: 1/3; no longer n-grams.
    ("777", "7", 1/3),
    # Of words: 2/3 and (1 + 1)/(2 + 1) and (0 + 1)/(1 + 1).
    ("a big dog".split(), "a big cat".split(), (2/3 * 2/3 * 1/2) ** (1/3)),
    ("12345", "12345", 1), ("12346", "12345", (4/5 * 4/5 * 3/4 * 2/3) ** (1/4))])
def test_bleu(answer, reference, expected):
  assert overlap.bleu(answer, reference) == pytest.approx(expected, abs=1e-9)
  if len(answer) > 3: assert overlap.bleu(answer, reference, order=1) == pytest.approx(
      1 if answer == reference else 4/5)
