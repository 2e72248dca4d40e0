"""The functions of the package: train, evaluate, sample and score.

Nothing heavy is imported before one of them is called.
"""
import difflib
import importlib.util
import pathlib
import re
from typing import Any

from rlx import configs


def config_file(name: str) -> str:
  """The file of a config, with its variant if the name has one.

    >>> config_file("quickstart:smoke").endswith("configs/quickstart.py:smoke")
    True

  Args:
    name: a name such as quickstart, quickstart:smoke or papers/prime, or the path of a .py file.
  Raises:
    ValueError: there is no such config.
  """
  path, colon, variant = name.partition(":")
  if path.endswith(".py"):
    if not pathlib.Path(path).is_file(): raise ValueError(f"no config file {path!r}.")
    return name
  folder = pathlib.Path(configs.__path__[0])
  names = sorted(str(p.relative_to(folder).with_suffix("")) for p in folder.rglob("*.py")
                 if p.stem != "__init__")
  if path not in names:
    by_last_part = {n.split("/")[-1]: n for n in names}
    near = (difflib.get_close_matches(path, names, n=1)
            or [by_last_part[n] for n in difflib.get_close_matches(path, by_last_part, n=1)])
    papers = sum(n.startswith("papers/") for n in names)
    top = [n for n in names if "/" not in n and n != "base"]
    raise ValueError(
        f"no config {path!r}; " + (f"did you mean {near[0]}? " if near else "")
        + f"There are {', '.join(top)} and {papers} named papers/...; a file's name ends in .py.")
  return str(folder / f"{path}.py") + colon + variant


def load_config(name: str) -> Any:
  """The ml_collections.ConfigDict of a config, locked.

    >>> load_config("quickstart:smoke").steps
    2

  Args:
    name: as of `config_file`.
  Raises:
    ValueError: there is no such config or variant.
  """
  path, _, variant = config_file(name).partition(":")
  spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
  assert spec and spec.loader
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  if not hasattr(module, "get_config"): raise ValueError(f"{path} has no function get_config.")
  config = module.get_config(*[variant] if variant else [])
  return config.lock()


def default_workdir(name: str) -> str:
  """The folder of a config's run where none is given.

    >>> default_workdir("papers/prime:smoke")
    'runs/papers-prime-smoke'
  """
  path, _, variant = name.partition(":")
  if path.endswith(".py"): path = pathlib.Path(path).stem
  return "runs/" + re.sub(r"[^\w.-]+", "-", f"{path}-{variant}" if variant else path)


def check_key(config: Any, key: str) -> None:
  """Raises ValueError if a config has no key of this dotted name.

    >>> check_key(load_config("quickstart"), "prm.bata")
    Traceback (most recent call last):
    ValueError: prm.bata: no such key; did you mean prm.beta? There are ...
  """
  section, path = config, key.split(".")
  for i, part in enumerate(path):
    names = sorted(section) if hasattr(section, "keys") else []
    if part not in names:
      prefix = "".join(f"{p}." for p in path[:i])
      near = "".join(f"did you mean {prefix}{n}? "
                     for n in difflib.get_close_matches(part, names, n=1))
      there = f"There are {names}." if names else f"{prefix[:-1]} has no keys."
      raise ValueError(f"{key}: no such key; {near}{there}")
    section = section[part]
