r"""Finds \boxed{...}."""
import re

_BOX = re.compile(r"\\(?:boxed|fbox)\s*")


def last(text):
  r"""Inside of the last \boxed{...} of a text; None if there is none.

  A box that is not closed is no box. Of \boxed{\boxed{5}} it is the inner one.
  Of "\boxed 72" it is 72: what follows up to the next space, which is what is meant.
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
