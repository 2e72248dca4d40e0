"""Where reasoning steps end in a text, and which tokens those are."""
import bisect
import itertools
import re


def boundaries(text, separator="\n\n"):
  """Character offsets where reasoning steps end.

  A step ends right after a separator, which belongs to it: the next step
  starts with its own first character. Text after the last separator is a step
  that ends with the text. Separators with nothing before them end no step.

  Args:
    separator: str, or a compiled regular expression.
  Returns:
    increasing offsets in (0, len(text)]; [] for an empty text.
  """
  if isinstance(separator, str):
    separator = re.compile("(?:" + re.escape(separator) + ")+")
  ends, start = [], 0
  for match in separator.finditer(text):
    if not match[0]: continue
    if match.start() > start: ends.append(match.end())
    start = match.end()
  if len(text) > start: ends.append(len(text))
  return ends


def token_ends(offsets, token_texts):
  """The token that holds the last character before each offset.

  Args:
    offsets: character offsets into "".join(token_texts), in (0, length].
    token_texts: decoded text of each token; may be empty strings.
  Returns:
    a token index for each offset; two steps that end in the same token repeat it.
  """
  ends = list(itertools.accumulate(map(len, token_texts)))
  return [bisect.bisect_left(ends, offset) for offset in offsets]
