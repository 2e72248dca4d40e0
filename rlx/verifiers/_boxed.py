r"""Extracts \boxed{...}."""
import re

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
  depth = 0
  for match in re.finditer(r"\\.|[{}]", text[start:], re.DOTALL):
    if match[0] == "{": depth += 1
    if match[0] == "}": depth -= 1
    if depth == 0: return text[start + 1:start + match.start()].strip()
  return None
