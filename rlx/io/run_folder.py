"""Reads what a run has recorded in its folder."""
import os
import pathlib
from typing import Any

from rlx.core import options
from rlx.io import strict_json


def read_recorded(workdir: str | os.PathLike) -> dict[str, Any]:
  """Returns versions.json of a run that has a checkpoint, {} if it has none.

  Raises:
    ValueError: as `read_versions`.
  """
  return read_versions(workdir) if has_checkpoint(workdir) else {}


def read_versions(workdir: str | os.PathLike) -> dict[str, Any]:
  """Returns versions.json of a run, {} if there is no such file.

  Raises:
    ValueError: the file does not have the entries that `record` writes.
  """
  def problem(entries):
    memory = entries.get("device_bytes")
    if not (memory is None or type(memory) is int and memory > 0):
      return f"device_bytes={memory!r:.40} is no size"
    return next((f"{k}={v!r:.40} is no text" for k, v in entries.items()
                 if k != "device_bytes" and not isinstance(v, str | None)), None)
  path = pathlib.Path(workdir) / "versions.json"
  return _read(path, problem) if path.exists() else {}


def read_config(workdir: str | os.PathLike) -> dict[str, Any]:
  """Returns config.json of a run, as nested dicts.

  Raises:
    ValueError: the file is not the config of a run.
  """
  def problem(entries):
    kinds = {"seed": int, "steps": int, "model.path": str | None, "prm.loss.name": str}
    values = options.flatten(entries)
    return next((f"it has no {key}" for key, kind in kinds.items()
                 if not isinstance(values.get(key, ()), kind)), None)
  return _read(pathlib.Path(workdir) / "config.json", problem)


def _read(path, problem):
  """Reads the JSON object in a file of a workdir; `problem` says what is wrong with it, or None."""
  try:
    entries = strict_json.read(path)
    if message := problem(entries): raise ValueError(f"{path}: {message}.")
  except ValueError as e:
    raise ValueError(f"{str(e).rstrip('.')}; remove the file to resume without checking whether "
                     "the config or the versions have changed.") from None
  return entries


def read_step(workdir: str | os.PathLike) -> int | None:
  """The number of steps after which the newest checkpoint was saved; None without a checkpoint."""
  return max((int(p.name) for p in (pathlib.Path(workdir) / "checkpoints").glob("*")
              if p.name.isdigit()), default=None)


def has_checkpoint(workdir: str | os.PathLike) -> bool:
  """Tells whether the run in a workdir has a checkpoint."""
  return read_step(workdir) is not None
