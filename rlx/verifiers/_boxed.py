r"""Extracts \boxed{...}."""
import re

from rlx.verifiers.math import latex

_BOX = re.compile(r"\\(?:boxed|fbox)\s*")


def last(text):
  r"""Returns the content of the last \boxed{...} of a text, None if there is none.

  A box that is not closed does not count. In \boxed{\boxed{5}} the inner box is the last one.
  The content of "\boxed 72" is 72, the text up to the next space.
  """
  start = None
  for match in _BOX.finditer(text): start = match.end()
  if start is None or start == len(text): return None
  if text[start] != "{": return re.match(r"[^\s$]*", text[start:])[0].rstrip(".,") or None
  try:
    return text[start + 1:latex.find_group_end(text, start) - 1].strip()
  except latex.Unreadable:
    return None
