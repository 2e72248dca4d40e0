"""JSON of files from elsewhere: whatever is wrong with one is a ValueError that names it."""
import collections
import json
import os

LARGEST = 25_000_000  # Bytes; they become 24 times as many. A config.json has a thousand.
_DEEPEST = 64  # Levels; more than Python's own limit leaves a message no room to name them.


def read(path, *, any_name=False):
  """The object in a file (a pathlib.Path); Args and Raises as `parse`."""
  if not path.is_file():
    raise ValueError(f"{path}: no such file.")
  size = path.stat().st_size
  if size > LARGEST:
    raise ValueError(f"{path}: {size} bytes; at most {LARGEST} are read as JSON.")
  return parse(path.read_bytes(), path, any_name=any_name)


def write(path, value):
  """Writes a value as a file's JSON: a kill leaves what was there, or all of it."""
  replace(path, json.dumps(value, indent=2, default=list))


def replace(path, text):
  """Writes the text of a file, in its place once it is whole."""
  part = path.with_name(f"{path.name}.part")
  part.write_text(text)
  os.replace(part, path)


def parse(raw, where, *, any_name=False):
  """The object that bytes in UTF-8 spell.

  Args:
    where: what messages start with, a file or one of its lines.
    any_name: also names that cannot be put into a message.
  Raises:
    ValueError: not UTF-8, not JSON (NaN is none), no object, too deep, or a name stands twice.
  """
  try:
    found = json.loads(raw.decode("utf-8"), object_pairs_hook=_once if any_name else _plain,
                       parse_constant=_no_constant)
    # Half a surrogate pair: json reads it, no tokenizer does.
    if b"\\u" in raw: json.dumps(found, ensure_ascii=False).encode("utf-8")
  except (ValueError, RecursionError) as e:
    raise ValueError(f"{where}: not JSON: {e}.") from None
  if raw.count(b"[") + raw.count(b"{") > _DEEPEST and _is_deep(found):
    raise ValueError(f"{where}: more than {_DEEPEST} levels of lists and objects.")
  if not isinstance(found, dict):
    raise ValueError(f"{where}: an object is needed, not {found!r:.60}.")
  return found


def _is_deep(found):
  level = [found]
  for _ in range(_DEEPEST):
    level = [x for holder in level
             for x in (holder.values() if isinstance(holder, dict) else holder)
             if isinstance(x, (dict, list))]
    if not level: return False
  return True


def _once(pairs):
  found = dict(pairs)
  if len(found) < len(pairs):
    name = collections.Counter(name for name, _ in pairs).most_common(1)[0][0]
    raise ValueError(f"{name!r} stands twice in an object")
  return found


def _plain(pairs):
  for name, _ in pairs: check_name(name)
  return _once(pairs)


def check_name(name):
  """ValueError for a name that is long or not all printable: messages are one line."""
  if len(name) > 200 or not name.isprintable():
    raise ValueError(f"{name!r:.60} is no name")


def _no_constant(name):
  raise ValueError(f"{name} is no value")
