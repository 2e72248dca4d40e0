"""Grids of runs: lists of changes to a config.

A change is a dict {dotted key: value}. Three functions combine lists of changes:

  product(a, b)   each change of a merged with each change of b
  zip_(a, b)      the first change of a merged with the first of b, and so on
  chain(a, b)     the changes of a, followed by those of b

If two merged changes set the same key, the later list takes precedence; a dict for a whole section
replaces keys that were set in it before. Three keys do not belong to the config: `config` is the
config that is changed (FILE or NAME, or with :ARGUMENT), `base` the base to which its method is
applied (configs/bases; its own where the key is missing), and `arm` names the runs that differ only
in their seed. The names of merged arms are joined by "-". A grid is a Python file whose function
`grid()` returns such a list:

  def grid():
    return grids.product(
        [{"config": "configs/quickstart.py"}],
        grids.chain(
            [{"arm": "dense"}],
            [{"arm": f"beta{b}", "prm.beta": b} for b in (0.1, 2.0)],
            [{"arm": "clipless", "learner.loss": dict(name="policy.reinforce")}]),
        [{"seed": s} for s in range(5)])

A dict may replace a section that names a method, and also the whole of `rewards` or
`advantages`. None is a value like any other. A cell is one run: arm, seed, config and changes.
"""
import functools
import importlib.util
import itertools
import json
import pathlib
import re

from rlx.build import (
    keys, load as build_load, methods as build_methods, sets, validation)
from rlx.configs import base  # type: ignore[attr-defined]  # Found by its __path__.
from rlx.grids import cell as cell_lib

SUMS = ("rewards", "advantages")  # Their keys are terms, which a change may add.


def product(*lists):
  """Returns every combination; changes of the last list vary fastest."""
  return [_merge(parts) for parts in itertools.product(*lists)]


def zip_(*lists):
  """Combines lists of equal length element by element.

  Raises:
    ValueError: they differ in length.
  """
  return [_merge(parts) for parts in zip(*lists, strict=True)]


def chain(*lists):
  """Concatenates lists of changes."""
  return list(itertools.chain(*lists))


def _merge(parts):
  merged = {}
  for part in parts:
    for key, value in part.items():
      if key == "arm" and "arm" in merged: value = f"{merged['arm']}-{value}"
      merged = {k: v for k, v in merged.items() if not _is_in(k, key)} | {key: value}
  return merged


def _is_in(key, section):
  return f"{key}.".startswith(f"{section}.")


def load(path, config=None):
  """Returns the cells of a grid file, after all checks that need no model.

  Args:
    path: FILE, or FILE:FUNCTION where it holds more grids than `grid`.
    config: the file that all cells change, in place of their own.
  Raises:
    ValueError: one line: the cell, the key, what is wrong.
  """
  file, _, name = path.partition(":")
  make = getattr(_module(file), name or "grid", None)
  if not callable(make): raise ValueError(f"{file}: no function {name or 'grid'}() in it.")
  changes = [change | ({} if config is None else {"config": config}) for change in make()]
  cells = [_cell(i, change) for i, change in enumerate(changes)]
  if not cells: raise ValueError(f"{path}: {name or 'grid'}() is empty.")
  names = [c.name for c in cells]
  if twice := sorted({n for n in names if names.count(n) > 1}):
    raise ValueError(f"{path}: {names.count(twice[0])} cells are called {twice[0]}; "
                     "each needs its own arm or seed.")
  seen = set()
  for cell in cells:  # A seed is an integer; beside that the cells of an arm are one.
    key = json.dumps([cell.config, cell.changes])
    if key not in seen: check(cell)
    seen.add(key)
  return cells


def _cell(index, change):
  for key in ("arm", "seed", "config"):
    if key not in change: raise ValueError(f"cell {index}: {key} is missing: {change}.")
  change = dict(change)
  arm, seed, config = (change.pop(k) for k in ("arm", "seed", "config"))
  if not isinstance(arm, str) or not re.fullmatch(r"\w[\w.+=-]*", arm):
    raise ValueError(f"cell {index}: arm={arm!r}: letters, digits and _.+=-, the name "
                     "of a folder.")
  if type(seed) is not int: raise ValueError(f"{arm}: seed={seed!r}: an integer.")
  for key, value in change.items():
    try:
      change[key] = json.loads(json.dumps(value))
    except TypeError as e:
      raise ValueError(f"{arm}: {key}={value!r}: {e}.") from None
  return cell_lib.Cell(arm, seed, config, change, index)


def check(cell):
  """Checks keys, methods and values before a model is loaded.

  Raises:
    ValueError: one line that starts with the cell's name.
  """
  try:
    c = make_config(cell)
    # Only the machine that the cell will run on knows what it has.
    if c.model.attention == "cudnn": c.model.attention = "blocks"
    keys.check(c)
    validation.check(c, build_methods.resolve_methods(c))
  except (ValueError, TypeError, KeyError, AttributeError) as e:
    raise ValueError(f"{cell.name}: " + " ".join(str(e).split())) from None


def make_config(cell):
  """Returns the config of a cell: the config of its file with its changes."""
  file, _, argument = cell.config.partition(":")
  if not file.endswith(".py"): file = build_load.config_file(file)
  module, changes = _module(file), dict(cell.changes)
  with base.over(changes.pop("base", None)):
    c = module.get_config(*[argument] if argument else [])
  sets.fill(c)
  for key, value in sets.change_source(c, changes).items(): _set(c, key, value)
  c.seed = cell.seed
  return c


def _set(c, key, value):
  """Sets an existing key, an option of a method or a term of a sum."""
  *path, last = key.split(".")
  keys.open_source(c, key)
  section = c
  for i, part in enumerate(path):
    section = section[part] if part in section else None
    if not hasattr(section, "keys"):
      raise ValueError(f"{'.'.join(path[:i + 1])}: no such section.")
  # Without a name there is no method whose options could be checked.
  is_method = "name" in section and section["name"] is not None
  is_open = is_method or ".".join(path) in SUMS or keys.is_open(key)
  if last not in section and not is_open:
    raise ValueError(f"{key}: no such key; there are {sorted(section)}.")
  if isinstance(value, dict) and not (
      is_open or "name" in value or f"{key}.".startswith((*keys.FREE, "prompts.mixture."))):
    raise ValueError(f"{key}: a section, not a method; set the keys in it.")
  try:
    section[last] = _tuples(value)
  except TypeError as e:
    raise ValueError(f"{key}={value!r}: {e}") from None


def _tuples(value):
  """Converts lists to tuples: JSON has no tuples, and configs have no lists."""
  if isinstance(value, dict): return {k: _tuples(v) for k, v in value.items()}
  return tuple(map(_tuples, value)) if isinstance(value, list) else value


@functools.cache
def _module(path):
  """Imports a Python file as a module."""
  if not pathlib.Path(path).is_file(): raise ValueError(f"{path}: no such file.")
  spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module
