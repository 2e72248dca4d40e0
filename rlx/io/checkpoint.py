"""Checkpoints of the complete state of a run, written by orbax."""
from collections.abc import Mapping
import json
import logging
import os
import pathlib
import shutil
import sys
from typing import Any
import zlib

import jax
from jax.experimental import multihost_utils
import numpy as np
import orbax.checkpoint as ocp

from rlx.io import strict_json, tables, terminal

# A file in each checkpoint: its number as `step`, and {file: [bytes, CRC-32]} as `files`.
_SEAL = "CHECKSUMS"
# orbax writes it after the checksums. It has times, which rlx does not use.
_TIMES = "_CHECKPOINT_METADATA"
_UNSEALED = (_SEAL, "commit_success.txt", _TIMES)
_ROOM = 1.1, 2**20   # A checkpoint takes at most 1.1 times the bytes of its arrays plus 1 MiB.


class Checkpoints:
  """Numbered checkpoints in `<workdir>/checkpoints`.

  A checkpoint holds the arrays of a TrainState and a dict of host state that JSON can express
  (iterator, buffer, counters): k steps, a kill, a resume and n - k steps give the same bits as n
  steps. Checkpoints are written in the background and atomically, with checksums of their files.
  A checkpoint without checksums, or whose files do not agree with them, is skipped with a line on
  stderr, and the one before is used.

  If there are several processes, all call the same methods and share the folder.
  """

  def __init__(self, workdir: str | pathlib.Path, *, max_to_keep: int = 2):
    """
    Raises:
      ValueError: the folder cannot be written.
    """
    self._dir = pathlib.Path(workdir).absolute() / "checkpoints"
    self._problems: dict[int, str | None] = {}  # Why a checkpoint is damaged, or None.
    self._saving: int | None = None
    try:
      self._dir.mkdir(parents=True, exist_ok=True)
      if not os.access(self._dir, os.W_OK): raise PermissionError("it cannot be written")
    except OSError as e:
      raise ValueError(f"{self._dir}: {e.strerror or e}.") from None
    # Warnings of orbax contain keys of its files.
    logging.getLogger("absl").addFilter(terminal.make_one_line)
    def manager():
      return ocp.CheckpointManager(
          self._dir, item_handlers=dict(state=ocp.StandardCheckpointHandler(),
                                        host=ocp.JsonCheckpointHandler()),
          options=ocp.CheckpointManagerOptions(
              max_to_keep=max_to_keep, create=True,
              async_options=ocp.AsyncOptions(post_finalization_callback=self._seal)))
    try:
      self._manager = manager()
    except Exception:  # orbax could not read the times, which are not needed.
      for step in self._steps(): (self._dir / str(step) / _TIMES).unlink(missing_ok=True)
      print(f"rlx: {self._dir}: the files {_TIMES} could not be read and are removed.",
            file=sys.stderr)
      self._manager = manager()

  @property
  def latest(self) -> int | None:
    """Number of the newest intact checkpoint; None if there is no checkpoint.

    Raises:
      ValueError: all checkpoints are damaged.
    """
    for step in sorted(self._steps(), reverse=True):
      if self._is_intact(step): return step
    if damaged := self._find_damaged():
      raise ValueError(f"{self._dir}: all checkpoints are damaged: {damaged}.")
    return None

  def save(self, step: int, state: Any, host: dict) -> None:
    """Starts to write a checkpoint; the arrays may be donated as soon as this returns.

    If the disk is full, older checkpoints are deleted first, and the run ends afterwards.

    Raises:
      ValueError: this checkpoint or the previous one was not written, or there is no room for the
        next one.
    """
    self._put_aside()
    is_full = self._shortage(state) is not None
    try:
      self._manager.wait_until_finished()  # Until then `_seal` needs the previous number.
      self._saving = step
      if is_full:
        for old in sorted(self._manager.all_steps())[:-1]: self._manager.delete(old)
        self.check_room(state)
      self._manager.save(step, args=ocp.args.Composite(
          state=ocp.args.StandardSave(state), host=ocp.args.JsonSave(host)))
      if is_full: self._manager.wait_until_finished()
    except Exception as e:
      raise ValueError(self._failure(e)) from e
    if is_full:
      raise ValueError(f"{self._dir}: step {step} is saved, and the disk is full: make room "
                       "and run again to go on.")

  def restore(self, template: Any, renamed: Mapping[str, str] = {}) -> tuple[Any, dict]:
    """(state, host) of the newest intact checkpoint, in the shardings of the template.

    Args:
      renamed: {name of an array in checkpoints of earlier versions: its name in the template}.
    Raises:
      ValueError: the checkpoint cannot be read, or its arrays do not have the shapes of the
        template: the model of the config is not the one that was saved.
    """
    step = self.latest
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, template)
    saved = self._read(step, lambda: self._manager.item_metadata(step)["state"])
    # The names are the same for records, tuples and the dicts of orbax.
    rename = lambda name: renamed.get(name, name)
    there = {rename(name): tuple(x.shape) for name, x in tables.flatten(saved).items()
             if hasattr(x, "shape")}
    wanted = {name: np.shape(x) for name, x in tables.flatten(abstract).items()}
    for name in sorted(there.keys() | wanted.keys()):
      if (shape := there.get(name, "none")) != (needed := wanted.get(name, "none")):
        raise ValueError(f"{self._dir}/{step}: {name} has shape {shape}, this config makes it "
                         f"{needed}; use the config the run was started with or another --workdir.")
    # A record of another version has the same arrays and other entries that are None.
    by_name = tables.flatten(abstract)
    stored = jax.tree.map_with_path(lambda path, x: by_name.get(rename(tables.name(path))), saved)
    out = self._read(step, lambda: self._manager.restore(step, args=ocp.args.Composite(
        state=ocp.args.StandardRestore(stored), host=ocp.args.JsonRestore())))
    arrays = {rename(name): x for name, x in tables.flatten(out["state"]).items()}
    return jax.tree.map_with_path(lambda path, x: arrays[tables.name(path)], abstract), out["host"]

  def _read(self, step, call):
    """call(), which lets orbax read a checkpoint with correct checksums."""
    try:
      return call()
    except Exception as e:
      line = (str(e).splitlines() or [""])[0]
      raise ValueError(f"{self._dir}/{step}: orbax cannot read it: {type(e).__name__}: "
                       f"{line:.300}") from e

  def check_room(self, state: Any) -> None:
    """Checks that the disk has room for one more checkpoint of `state`.

    Raises:
      ValueError: it has not; one line with both sizes.
    """
    if problem := self._shortage(state): raise ValueError(f"{self._dir}: {problem}.")

  def _shortage(self, state):
    factor, more = _ROOM
    need = more + factor * sum(np.prod(np.shape(x)) * x.dtype.itemsize
                               for x in jax.tree.leaves(state) if hasattr(x, "dtype"))
    free = shutil.disk_usage(self._dir).free
    if free >= need: return None
    return f"{free / 1e6:.1f} MB are free and a checkpoint takes {need / 1e6:.1f}"

  def close(self) -> None:
    """Waits for the checkpoint that is being written.

    Raises:
      ValueError: a write failed.
    """
    try:
      self._manager.wait_until_finished()
    except Exception as e:
      raise ValueError(self._failure(e)) from e
    self._manager.close()

  def _failure(self, error):
    # The error of the file system is the last of a long chain.
    lines = [line for line in str(error).splitlines() if line.strip()] or [repr(error)]
    reason = "No space left on device" if "No space left" in lines[-1] else lines[-1].strip()
    return (f"{self._dir}: a checkpoint was not written: {reason}; run again to go on from the "
            "one before.")

  def _seal(self):
    """Writes the checksums of a checkpoint before orbax renames its folder."""
    if jax.process_index(): return
    for folder in self._dir.iterdir():  # Its temporary name has a suffix.
      if folder.name.partition(".")[0] == str(self._saving) and folder.is_dir():
        (folder / _SEAL).write_text(json.dumps(dict(step=self._saving, files=_checksums(folder))))

  def _steps(self):
    """The numbers of the entries in the folder, intact or not."""
    return [int(p.name) for p in self._dir.iterdir()
            if p.name.isascii() and p.name.isdigit() and p.name == str(int(p.name))]

  def _is_intact(self, step):
    if step not in self._problems:
      folder = self._dir / str(step)
      self._problems[step] = _problem(folder)
      if self._problems[step]:
        print(f"rlx: {folder}: {self._problems[step]}; it is skipped.", file=sys.stderr)
    return self._problems[step] is None

  def _find_damaged(self):
    return {step: problem for step, problem in self._problems.items() if problem}

  def _put_aside(self):
    """Renames damaged checkpoints: orbax writes none that is older than an existing one."""
    for step in self._steps():
      if (self._dir / str(step)).is_symlink(): self._is_intact(step)
    damaged = self._find_damaged()
    if not damaged: return
    if not jax.process_index():
      for step in damaged:
        there = sum(1 for _ in self._dir.glob(f"damaged-{step}*"))
        (self._dir / str(step)).rename(self._dir / f"damaged-{step}{f'-{there}' * bool(there)}")
    if jax.process_count() > 1: multihost_utils.sync_global_devices("damaged")
    for step in damaged: del self._problems[step]
    self._manager.reload()


def _checksums(folder):
  """{file: [bytes, CRC-32]} of the files of a checkpoint that have checksums."""
  checksums = {}
  for path in sorted(folder.rglob("*")):
    if path.is_file() and path.name not in _UNSEALED and not path.name.startswith("."):
      crc = 0
      with path.open("rb") as f:
        while block := f.read(1 << 22): crc = zlib.crc32(block, crc)
      checksums[str(path.relative_to(folder))] = [path.stat().st_size, crc]
  return checksums


def _problem(folder):
  """Why a folder is no intact checkpoint; None if it is one."""
  # orbax cannot delete a link.
  if folder.is_symlink() or not folder.is_dir(): return "it is no folder"
  if not (folder / _SEAL).is_file(): return f"{_SEAL} is missing"
  try:
    seal, now = strict_json.read(folder / _SEAL), _checksums(folder)
  except (OSError, ValueError) as e:
    return f"it cannot be read: {e}".rstrip(".")
  if seal.get("step") != int(folder.name): return f"it is of step {seal.get('step')!r:.40}"
  if not isinstance(then := seal.get("files"), dict): return f"{_SEAL} has no files"
  for name in sorted(then.keys() | now.keys()):
    if name not in now: return f"{name} is missing"
    if name not in then: return f"{name} is not in {_SEAL}"
    if now[name] != then[name]:
      return f"{name} was altered: [bytes, CRC-32] are {now[name]}, {then[name]!r:.60} were written"
  return None if now else "it is empty"
