r"""Extracts \boxed{...}, \fbox{...} and \framebox{...}."""
import re

from rlx.verifiers.math import tables

_BOX = re.compile(r"\\(?:boxed|fbox|framebox(?:\s*\[[^][]{0,20}\]){0,2})(?![A-Za-z])\s*")
_BARE = re.compile(r"(?:[-+.\d\\(]|[A-Za-z](?![A-Za-z]))[^\s$]*")  # "\boxed 72", not "\boxed or".
_PLACE = tables.phrase("place")      # What instructions have in a box instead of an answer.
_BETWEEN = tables.phrase("between")  # Boxes with nothing else between them are one answer.
_PARAGRAPH = re.compile(r"\n[ \t]*\n")


def last(text):
  r"""Returns the content of the last box of a text, None if there is none.

  A box that is not closed has no content, and none of the boxes before it counts. Boxes that are
  empty, or name what belongs there ("\boxed{answer}"), are left out. In \boxed{\boxed{5}} the
  inner box is the last one. The content of "\boxed 72" is 72, the text up to the next space.
  """
  boxes = find(text)
  return boxes[-1][0] if boxes else None


def find(text):
  """Returns [(content, start, end)] of the boxes of a text, in order; see `last`."""
  if not (matches := list(_BOX.finditer(text))): return []
  boxes, ends = [], _find_group_ends(text, matches[0].end())
  for match in matches:
    start, begin = match.start(), match.end()
    if boxes and start < boxes[-1][3]: boxes.pop()  # It is around this one.
    if not text.startswith("{", begin):
      if bare := _BARE.match(text, begin): boxes.append((start, begin, bare.end(), bare.end()))
    elif begin not in ends:
      boxes = []
    elif not _PLACE.fullmatch(text, begin + 1, ends[begin] - 1):
      boxes.append((start, begin + 1, ends[begin] - 1, ends[begin]))
  contents = [text[begin:stop].strip() if stop < end else text[begin:stop].rstrip(".,`*")
              for _, begin, stop, end in boxes]
  return [(content, start, end) for content, (start, _, _, end) in zip(contents, boxes) if content]


def _find_group_ends(text, start):
  """Returns {index of a brace that opens a group: index after the group}, in linear time."""
  ends, waiting = {}, []
  for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
    if match[0] == "{": waiting.append(match.start())
    elif match[0] == "}" and waiting: ends[waiting.pop()] = match.end()
  return ends


def find_joined(text, boxes):
  r"""Returns the last boxes that only words such as "and", commas or a name stand between.

    $\boxed{2}$ and $x_2 = \boxed{-4}$
  """
  first = len(boxes) - 1
  while first > 0 and _BETWEEN.fullmatch(text, boxes[first - 1][2], boxes[first][1]): first -= 1
  return boxes[first:]


def find_last_paragraph(text, boxes):
  """Returns the boxes of the last paragraph that holds one."""
  start = max((m.end() for m in _PARAGRAPH.finditer(text, 0, boxes[-1][1])), default=0)
  return [box for box in boxes if box[1] >= start]
