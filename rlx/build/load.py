"""Finds a config by its name, its file or the folder of a run, and loads it."""
import difflib
import importlib.util
import itertools
import os
import pathlib
import re
import tempfile
from typing import Any

from rlx import configs
from rlx.configs import base  # type: ignore[attr-defined]  # Found by its __path__.
from rlx.build import keys, sets
from rlx.core import options
from rlx.io import run_folder

_NAME_OF_MODEL = re.compile(r"[\w.-]+/[\w.-]+")
_FOLDER = pathlib.Path(configs.__path__[0])


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
  if path not in (names := _names()):
    if (model := find_model(name)) == name:
      raise ValueError(f"config={name!r}: this is a model; name a config such as quickstart, and "
                       f"the model as model={name!r} (model.path={name} in a command).")
    by_last_part = {n.split("/")[-1]: n for n in names}
    near = ([by_last_part[path]] if path in by_last_part else
            difflib.get_close_matches(path, names, n=1)
            or [by_last_part[n] for n in difflib.get_close_matches(path, by_last_part, n=1)])
    papers = sum(n.startswith("papers/") for n in names)
    top = [n for n in names if "/" not in n and n != "base"]
    raise ValueError(
        f"no config {path!r}; " + (f"did you mean {near[0]}? There" if near else "there")
        + f" are {', '.join(top)} and {papers} named papers/...; a file's name ends in .py"
        + (f", a model is given as model={model!r}." if model and not near else "."))
  return str(_FOLDER / f"{path}.py") + colon + variant


def find_model(name: str) -> str | None:
  """What model.path would be if this text means a model and no config; None if it does not.

    >>> find_model("Qwen/Qwen3-0.6B"), find_model("papers/grpo"), find_model("quikstart")
    ('hf:Qwen/Qwen3-0.6B', None, None)
  """
  is_folder = (pathlib.Path(name) / "config.json").is_file() and not _is_run(name)
  if name.startswith("hf:") or is_folder or name.endswith((".gguf", ".whl")): return name
  is_name = _NAME_OF_MODEL.fullmatch(name) and not (_FOLDER / name).parent.is_dir()
  return f"hf:{name}" if is_name else None


def _names() -> list[str]:
  """The names of all configs."""
  return sorted(str(p.relative_to(_FOLDER).with_suffix("")) for p in _FOLDER.rglob("*.py")
                if p.stem != "__init__")


def _is_run(name: str) -> bool:
  """Whether this is the folder of a run; a config of the same name precedes it."""
  file = pathlib.Path(name) / "config.json"
  return file.is_file() and name not in _names() and '"model_type"' not in file.read_text()


def load_config(name: str, over: str | None = None) -> Any:
  """The ml_collections.ConfigDict of a config, locked.

    >>> load_config("quickstart:smoke").steps
    2
    >>> load_config("papers/grpo", over="gsm8k").prompts.source
    'hf:openai/gsm8k:main'

  Args:
    name: as of `config_file`, or the folder of a run.
    over: the base to which the config's method is applied, a file of configs/bases; NAME or
      NAME:ARGUMENT. None: the config's own.
  Raises:
    ValueError: there is no such config, variant or base, the method cannot be applied to the base,
      or config.json is not the config of a run.
  """
  if over is None: return _load_file(name)
  if _is_run(name): raise ValueError(f"base={over!r}: {name} is a run, whose config is complete.")
  with base.over(over) as asked:
    try:
      config = _load_file(name)
    except ValueError as e:
      raise ValueError(f"{name}: {e}") from None
  if not asked: raise ValueError(f"base={over!r}: {name} is no method over a base.")
  return config


def _load_file(name: str) -> Any:
  if _is_run(name): return _config_of_run(name)
  path, _, variant = config_file(name).partition(":")
  spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
  assert spec and spec.loader
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  if not hasattr(module, "get_config"): raise ValueError(f"{path} has no function get_config.")
  config = module.get_config(*[variant] if variant else [])
  sets.fill(config)
  return config.lock()


def _config_of_run(folder: str) -> Any:
  """The ConfigDict of a run's config.json; its keys have the types that configs/base.py states."""
  def fill(section: Any, values: dict[str, Any]) -> None:
    # A section that names another method has other options.
    is_same = values.get("name") == section.get("name")
    for key in set(section) - (set(values) if is_same else {"name"}):
      if not hasattr(section[key], "keys") or section[key]: del section[key]  # Empty: it has none.
    for key, value in values.items():
      if isinstance(value, dict) and key in section: fill(section[key], value)
      else: section[key] = tuple(value) if isinstance(value, list) else value
  config = base.get_config()
  with config.unlocked(): fill(config, keys.rename_sections(run_folder.read_config(folder)))
  return config


def find_free_workdir(default: str, config: Any) -> str:
  """The default folder, or with -2, -3, ... the first one without a run of other methods."""
  now = options.flatten(config.to_dict())
  def has_other_methods(folder: str) -> bool:
    is_run = run_folder.has_checkpoint(folder) and (pathlib.Path(folder) / "config.json").exists()
    return is_run and bool(keys.find_other_methods(
        options.flatten(run_folder.read_config(folder)), now))
  folders = itertools.chain([default], (f"{default}-{i}" for i in itertools.count(2)))
  return next(folder for folder in folders if not has_other_methods(folder))


def check_workdir(workdir: str | os.PathLike, key: str = "workdir") -> None:
  """Refuses a folder that cannot be written, before anything runs.

  Args:
    key: the argument that names it.
  Raises:
    ValueError: it is an address such as gs://..., or neither it nor a folder above it is one that
      can be written.
  """
  if "://" in str(workdir):
    raise ValueError(f"{key}={str(workdir)!r}: files are written to a local or mounted folder; "
                     "copy it to the bucket afterwards.")
  path = pathlib.Path(workdir).absolute()
  try:
    above = next(p for p in (path, *path.parents) if p.exists())
    if not above.is_dir(): raise NotADirectoryError
    with tempfile.TemporaryFile(dir=above): pass  # Where os.access allows, writing may still fail.
  except OSError as e:
    why = "is no folder" if isinstance(e, NotADirectoryError) else "cannot be written"
    raise ValueError(f"{key}={str(workdir)!r}: {above} {why}; name another one.") from None


def default_workdir(name: str, over: str | None = None) -> str:
  """The folder of a config's run where none is given; a run's folder is its own.

    >>> default_workdir("papers/prime:smoke"), default_workdir("papers/prime", over="gsm8k")
    ('runs/papers-prime-smoke', 'runs/papers-prime-gsm8k')
  """
  if _is_run(name): return name
  path, _, variant = name.partition(":")
  if path.endswith(".py"): path = pathlib.Path(path).stem
  parts = filter(None, (path, variant, over))
  return "runs/" + re.sub(r"[^\w.-]+", "-", "-".join(parts))
