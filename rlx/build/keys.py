"""The check of the keys of a config: that they exist, and have values that are allowed.

configs/base.py declares what a key may be, the signature of a method what its options may be.
renamed.toml has the names of earlier versions.
"""
import difflib
import functools
import keyword
import pathlib
import re
import tomllib
from collections.abc import Mapping
from typing import Any, TypeAlias

import ml_collections

from rlx.configs import base  # type: ignore[attr-defined]  # Found by its __path__.
from rlx.core import options, ranges

Config: TypeAlias = ml_collections.ConfigDict
# Sections whose keys are those of methods, a source or a decoder.
FREE = ("rewards.", "advantages.", "prompts.options.", "prompts.columns.", "sft.fresh.")
# Sections that take further keys: variables of a chat template, options of a data set.
OPEN = ("prompts.template", "prompts.columns")
# Sections of base.NAMED of which each part names a function, whose options are further keys.
_OF_FUNCTION = ("prompts.derived",)
# The start of a key in a section whose name users choose, see NAMED in configs/base.py. A source of
# prompts.mixture and a set of eval.sets may have the keys of `prompts` that say what a source is,
# one of prompts.derived its template.
_NAMED = re.compile(rf"({'|'.join(map(re.escape, base.NAMED))})\.([^.]*)(?=\.)")
_SOURCE = re.compile(r"(prompts\.mixture|prompts\.derived|eval\.sets)\.([^.]*)(?=\.)")
RENAMED = tomllib.loads(pathlib.Path(__file__).with_name("renamed.toml").read_text())


def check(config: Config) -> None:
  """Refuses keys that configs/base.py does not have, and values that are not allowed.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  given = options.flatten(config.to_dict())
  for key, value in given.items():
    section, _, option = key.rpartition(".")
    old = str(value) if option == "name" else f"{given.get(f'{section}.name')}.{option}"
    if old in RENAMED: raise ValueError(f"{key}={value!r}: renamed to {RENAMED[old]}.")
    module, colon, name = str(value).partition(":")
    if colon and module in RENAMED:
      raise ValueError(f"{key}={value!r}: renamed to {RENAMED[module]}:{name}.")
  for key in base.allowed():
    if key not in given and "*" not in key and not key.startswith(FREE):
      raise ValueError(f"{key} is missing.")
  for path in base.NAMED:
    for name in functools.reduce(lambda at, part: at.get(part) or {}, path.split("."), config):
      _check_name(path, name)
  for key, value in given.items():
    section, alone = key.rpartition(".")[0], _SOURCE.sub("prompts", key)
    if section in ("rewards", "advantages") and find_range(key) is None:
      raise ValueError(f"{key}={value!r:.80}: a section with the name of a method.")
    if find_range(key) is None and not alone.startswith(FREE) and not find_range(f"{section}.name"):
      check_exists(base.get_config(), key)
      raise ValueError(f"{key}={value!r:.80}: a section of keys.")
    is_of_source = alone.startswith("prompts.options.")
    ranges.check(key, value, find_range(key) or (ranges.FINITE if is_of_source else None))


def find_range(key: str) -> ranges.Range | ranges.Kind | None:
  """What configs/base.py declares for a key; None where the function of its section does."""
  parts = _NAMED.sub(r"\1.*", key).split(".")
  of_any_term = ".".join((parts[0], "*", *parts[2:]))
  return base.allowed().get(".".join(parts)) or base.allowed().get(of_any_term)


def find_other_methods(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
  """The keys by which two flat configs name different methods; those that one lacks count only
  among rewards and advantages, which versions of rlx do not add."""
  names = [key for key in sorted({*old, *new}) if key.endswith(".name") and key.startswith(
      ("rewards.", "advantages.", "learner.", "prm.", "rollouts."))]
  return [key for key in names if old.get(key) != new.get(key) and (
      key in old and key in new or key.startswith(("rewards.", "advantages.")))]


def check_exists(config: Config, key: str) -> None:
  """Refuses a dotted name that is no key or section of a config.

    >>> check_exists(base.get_config(), "prm.bata")
    Traceback (most recent call last):
    ValueError: prm.bata: no such key; did you mean prm.beta? There are ...

  Raises:
    ValueError: one line with similar names, or with the new name of a key in RENAMED.
  """
  for old, new in RENAMED.items():
    if key == old or key.startswith(f"{old}."):
      raise ValueError(f"{key}: renamed to {new}{key.removeprefix(old)}.")
  if is_open(key): return
  section, path = config, key.split(".")
  for i, part in enumerate(path):
    if (parent := ".".join(path[:i])) in base.NAMED:
      section = base.named_section(parent)
      continue
    names: list[str] = sorted(section) if hasattr(section, "keys") else []
    if part not in names:
      prefix = "".join(f"{p}." for p in path[:i])
      near = difflib.get_close_matches(part, names, n=1)
      raise ValueError(f"{key}: no such key; " + (
          f"did you mean {prefix}{near[0]}? There are {names}." if near else
          f"there are {names}." if names else f"{prefix[:-1]} has no keys."))
    section = section[part]


def rename_sections(recorded: dict[str, Any]) -> dict[str, Any]:
  """The config that an earlier version recorded, its sections called as they are now."""
  return {RENAMED.get(name, name): section for name, section in recorded.items()}


def is_open(key: str) -> bool:
  """Whether a key is in a section that takes further keys, see OPEN and _OF_FUNCTION; of a source
  of prompts.mixture or a set of eval.sets that of its options too, since it starts without any."""
  alone, section = _SOURCE.sub("prompts", key), key.rpartition(".")[0]
  return (alone.rpartition(".")[0] in (*OPEN, *["prompts.options"] * (alone != key))
          or section.rpartition(".")[0] in _OF_FUNCTION)


def is_named_section(key: str) -> bool:
  """Whether a key is that of a whole section of base.NAMED, such as prompts.mixture.mine."""
  return key.rpartition(".")[0] in base.NAMED


def open_source(config: Config, key: str) -> None:
  """Makes room for a key of a section of base.NAMED, such as a source of prompts.mixture, of which
  a config has those that differ.

    >>> open_source(config := base.get_config(), "prompts.mixture.mine.weight")
    >>> config.prompts.mixture.to_dict()
    {'mine': {'weight': None}}
  """
  if not (match := _NAMED.match(key)): return
  _check_name(match[1], match[2])
  *sections, name = key.split(".")
  at, known = config, base.named_section(match[1])
  with config.unlocked():
    for i, part in enumerate(sections):
      if part not in at: at[part] = {}
      at = at[part]
      if i > match[1].count(".") + 1: known = known[part]
    if name in known and not hasattr(known[name], "keys"):
      given = at.get(name)  # A weight of 1 in a file may become 0.5.
      with at.ignore_type(): at[name] = known.get_ref(name)
      if given is not None: at[name] = given


def _check_name(section: str, name: str) -> None:
  """Refuses names of parts of these sections that cannot be a part of a key."""
  if not name.isidentifier() or keyword.iskeyword(name) or hasattr(Config, name):
    raise ValueError(f"{section}.{name}: another name for the {base.NAMED[section][0]}, of "
                     "letters, digits and _, that means nothing in Python.")
