"""Strict parsing of untrusted JSON files: any fault is a ValueError that names the file."""
import collections
import json
import os
import pathlib
from typing import Any

LARGEST = 25_000_000  # Bytes; parsing takes up to 24 times as many. A config.json has 1000.
_DEEPEST = 64  # Levels of nesting, far below Python's recursion limit.


def read(path: pathlib.Path, *, any_name: bool = False, kind: type = dict,
         has_nan: bool = False) -> Any:
  """The value in a file (a pathlib.Path); Args and Raises as `parse`."""
  if not path.is_file(): raise ValueError(f"{path}: no such file.")
  if (size := path.stat().st_size) > LARGEST:
    raise ValueError(f"{path}: {size} bytes; at most {LARGEST} are read as JSON.")
  return parse(path.read_bytes(), path, any_name=any_name, kind=kind, has_nan=has_nan)


def write(path: pathlib.Path, value: Any) -> None:
  """Writes a value as JSON, atomically: after a kill the file is the old or the new one."""
  replace(path, json.dumps(value, indent=2, default=list) + "\n")


def replace(path: pathlib.Path, text: str) -> None:
  """Replaces the text of a file atomically."""
  part = path.with_name(f"{path.name}.part")
  part.write_text(text)
  os.replace(part, path)


def parse(raw: bytes, where: object, *, any_name: bool = False, kind: type = dict,
          has_nan: bool = False) -> Any:
  """Parses an object (or a list, with `kind=list`) from bytes in UTF-8.

  Args:
    where: the start of messages, a file or one of its lines.
    any_name: allows names that cannot be printed in a message.
    has_nan: reads NaN, which Python's json writes, as None.
  Raises:
    ValueError: the bytes are not UTF-8 or not JSON (NaN is not JSON), the value is of another
      kind or nested too deeply, or a name occurs twice in an object.
  """
  try:
    value = json.loads(raw.decode("utf-8-sig"),
                       object_pairs_hook=_check_unique if any_name else _check_pairs,
                       parse_constant=_drop_nan if has_nan else _no_constant)
    # Half a surrogate pair: json reads it, no tokenizer does.
    if b"\\u" in raw: json.dumps(value, ensure_ascii=False).encode("utf-8")
  except (ValueError, RecursionError) as e:
    raise ValueError(f"{where}: not JSON: {e}.") from None
  if raw.count(b"[") + raw.count(b"{") > _DEEPEST and _is_deep(value):
    raise ValueError(f"{where}: more than {_DEEPEST} levels of lists and objects.")
  if not isinstance(value, kind):
    needed = "an object" if kind is dict else "a list"
    raise ValueError(f"{where}: {needed} is needed, not {value!r:.60}.")
  return value


def _is_deep(value):
  level = [value]
  for _ in range(_DEEPEST):
    level = [x for holder in level
             for x in (holder.values() if isinstance(holder, dict) else holder)
             if isinstance(x, (dict, list))]
    if not level: return False
  return True


def _check_unique(pairs):
  value = dict(pairs)
  if len(value) < len(pairs):
    name = collections.Counter(name for name, _ in pairs).most_common(1)[0][0]
    raise ValueError(f"{name!r} stands twice in an object")
  return value


def _check_pairs(pairs):
  for name, _ in pairs: check_name(name)
  return _check_unique(pairs)


def check_name(name: str) -> None:
  """Raises ValueError for a name that is too long or not printable, so that messages that contain
  names are one line."""
  if len(name) > 200 or not name.isprintable(): raise ValueError(f"{name!r:.60} is no name")


def _drop_nan(name):
  return None if name == "NaN" else _no_constant(name)


def _no_constant(name):
  raise ValueError(f"{name} is no value")
