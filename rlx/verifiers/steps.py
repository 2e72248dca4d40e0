"""Splits texts into reasoning steps, and maps their ends to tokens."""
import bisect
import itertools
import re
from collections.abc import Sequence


def boundaries(text: str, separator: str) -> list[int]:
  """Returns the character offsets where reasoning steps end.

  A step includes the separator at its end. Text after the last separator is a step that ends
  with the text. A separator without text before it does not end a step.

  Args:
    separator: not empty.
  Returns:
    increasing offsets in (0, len(text)]; [] for an empty text.
  """
  ends, start = [], 0
  for match in re.finditer(f"(?:{re.escape(separator)})+", text):
    if match.start() > start: ends.append(match.end())
    start = match.end()
  if len(text) > start: ends.append(len(text))
  return ends


def token_ends(offsets: Sequence[int], token_texts: Sequence[str]) -> list[int]:
  """Returns the index of the token that contains the last character before each offset.

  Args:
    offsets: character offsets into "".join(token_texts), in (0, length].
    token_texts: decoded text of each token; may be empty strings.
  Returns:
    a token index for each offset; two steps that end in the same token repeat it.
  """
  ends = list(itertools.accumulate(map(len, token_texts)))
  return [bisect.bisect_left(ends, offset) for offset in offsets]
