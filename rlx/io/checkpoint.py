"""Checkpoints of everything a run needs to go on, through orbax."""
import json
import logging
import os
import pathlib
import shutil
import sys
import zlib

import jax
from jax.experimental import multihost_utils
import numpy as np
import orbax.checkpoint as ocp

from rlx.io import strict_json
from rlx.io import terminal

# In each checkpoint: its number as `step`, and {file: [bytes, CRC-32]} of the others as `files`.
_SEAL = "CHECKSUMS"
# Written when the checkpoint appears, after its seal: marks, and times nobody reads here.
_TIMES = "_CHECKPOINT_METADATA"
_UNSEALED = (_SEAL, "commit_success.txt", _TIMES)
_ROOM = 1.1, 2**20   # A checkpoint takes at most so many times the bytes of its arrays, and these.


class Checkpoints:
  """Numbered checkpoints in `<workdir>/checkpoints`.

  One holds the arrays of a TrainState and a JSON-able dict of host state
  (iterator, buffer, counters): k steps, a kill, a resume and n - k steps give
  what n steps give, bit for bit. Writing is in the background; a checkpoint
  appears when it is whole, with the checksums of its files. One that has none, or whose
  files no longer agree with them, is passed over, with a line on stderr, for the one before.

  With several processes all call the same methods and share the folder.
  """

  def __init__(self, workdir, *, max_to_keep=2):
    """
    Raises:
      ValueError: the folder cannot be written.
    """
    self._dir = pathlib.Path(workdir).absolute() / "checkpoints"
    self._damaged, self._whole, self._saving = {}, set(), None
    try:
      self._dir.mkdir(parents=True, exist_ok=True)
      if not os.access(self._dir, os.W_OK): raise PermissionError("it cannot be written")
    except OSError as e:
      raise ValueError(f"{self._dir}: {e.strerror or e}.") from None
    logging.getLogger("absl").addFilter(terminal.logged)  # orbax warns with keys of its files.
    def manager():
      return ocp.CheckpointManager(
          self._dir, item_handlers=dict(state=ocp.StandardCheckpointHandler(),
                                        host=ocp.JsonCheckpointHandler()),
          options=ocp.CheckpointManagerOptions(
              max_to_keep=max_to_keep, create=True,
              async_options=ocp.AsyncOptions(post_finalization_callback=self._seal)))
    try:
      self._manager = manager()
    except Exception:  # Orbax reads the times, which are of no use here.
      for step in self._steps(): (self._dir / str(step) / _TIMES).unlink(missing_ok=True)
      print(f"rlx: {self._dir}: the files {_TIMES} could not be read and are removed.",
            file=sys.stderr)
      self._manager = manager()

  @property
  def latest(self):
    """Number of the newest whole checkpoint, or None.

    Raises:
      ValueError: there are checkpoints, and all are damaged.
    """
    for step in sorted(self._steps(), reverse=True):
      if self._is_whole(step): return step
    if self._damaged:
      raise ValueError(f"{self._dir}: all checkpoints are damaged: {self._damaged}.")
    return None

  def save(self, step, state, host):
    """Starts writing; the arrays may be donated as soon as this returns.

    Where the disk is full it drops the older checkpoints first, and then ends.

    Raises:
      ValueError: this checkpoint or the one before was not written, or the next
        one could not be.
    """
    self._put_aside()
    is_full = self._shortage(state) is not None
    try:
      self._manager.wait_until_finished()  # `_seal` is of the one before until then.
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

  def restore(self, template):
    """(state, host) of the newest whole checkpoint, in the template's shardings.

    Raises:
      ValueError: the checkpoint's arrays do not fit the template, which means
        that the config's model differs from the one that was saved; or it cannot be read.
    """
    step = self.latest
    abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, template)
    saved = self._read(step, lambda: self._manager.item_metadata(step)["state"])
    shapes = {_name(path): tuple(x.shape) for path, x in
              jax.tree.leaves_with_path(saved) if hasattr(x, "shape")}
    for path, x in jax.tree.leaves_with_path(abstract):
      found = shapes.pop(_name(path), "none")
      if found != np.shape(x): self._refuse(step, _name(path), found, np.shape(x))
    for name, found in shapes.items(): self._refuse(step, name, found, "none")
    out = self._read(step, lambda: self._manager.restore(step, args=ocp.args.Composite(
        state=ocp.args.StandardRestore(abstract), host=ocp.args.JsonRestore())))
    return out["state"], out["host"]

  def _read(self, step, call):
    """What orbax reads of a checkpoint whose files are those that were written."""
    try:
      return call()
    except Exception as e:
      said = (str(e).splitlines() or [""])[0]
      raise ValueError(f"{self._dir}/{step}: orbax cannot read it: {type(e).__name__}: "
                       f"{said:.300}") from e

  def _refuse(self, step, name, found, wanted):
    raise ValueError(f"{self._dir}/{step}: {name} has shape {found}, this config makes it "
                     f"{wanted}; use the config the run was started with or another "
                     "--workdir.")

  def check_room(self, state):
    """Refuses to go on where the disk has no room for one more checkpoint of `state`.

    Raises:
      ValueError: one line with both sizes.
    """
    if problem := self._shortage(state): raise ValueError(f"{self._dir}: {problem}.")

  def _shortage(self, state):
    factor, more = _ROOM
    need = more + factor * sum(np.prod(np.shape(x)) * x.dtype.itemsize
                               for x in jax.tree.leaves(state) if hasattr(x, "dtype"))
    free = shutil.disk_usage(self._dir).free
    if free >= need: return None
    return f"{free / 1e6:.1f} MB are free and a checkpoint takes {need / 1e6:.1f}"

  def close(self):
    """Waits for writes under way.

    Raises:
      ValueError: a write failed.
    """
    try:
      self._manager.wait_until_finished()
    except Exception as e:
      raise ValueError(self._failure(e)) from e
    self._manager.close()

  def _failure(self, error):
    # What the file system said comes last in a long chain.
    lines = [line for line in str(error).splitlines() if line.strip()] or [repr(error)]
    said = "No space left on device" if "No space left" in lines[-1] else lines[-1].strip()
    return (f"{self._dir}: a checkpoint was not written: {said}; run again to go on from the "
            "one before.")

  def _seal(self):
    """Writes the checksums of the checkpoint that is about to appear."""
    if jax.process_index(): return
    for folder in self._dir.iterdir():  # Before it has its name there may be more in it.
      if folder.name.partition(".")[0] == str(self._saving) and folder.is_dir():
        (folder / _SEAL).write_text(json.dumps(dict(step=self._saving, files=_checksums(folder))))

  def _steps(self):
    """The numbers that entries of the folder have for a name, whole or not."""
    return [int(p.name) for p in self._dir.iterdir()
            if p.name.isascii() and p.name.isdigit() and p.name == str(int(p.name))]

  def _is_whole(self, step):
    folder = self._dir / str(step)
    if step in self._whole: return True
    if step not in self._damaged and (problem := _problem(folder)):
      self._damaged[step] = problem
      print(f"rlx: {folder}: {problem}; it is passed over.", file=sys.stderr)
    if step not in self._damaged: self._whole.add(step)
    return step in self._whole

  def _put_aside(self):
    """Renames damaged checkpoints: orbax writes none older than those it sees."""
    for step in self._steps():
      if (self._dir / str(step)).is_symlink(): self._is_whole(step)
    if not self._damaged: return
    if not jax.process_index():
      for step in self._damaged:
        there = sum(1 for _ in self._dir.glob(f"damaged-{step}*"))
        (self._dir / str(step)).rename(self._dir / f"damaged-{step}{f'-{there}' * bool(there)}")
    if jax.process_count() > 1: multihost_utils.sync_global_devices("damaged")
    self._damaged = {}
    self._manager.reload()


def _checksums(folder):
  """{file: [bytes, CRC-32]} of everything below that is sealed."""
  found = {}
  for path in sorted(folder.rglob("*")):
    if path.is_file() and path.name not in _UNSEALED and not path.name.startswith("."):
      crc = 0
      with path.open("rb") as f:
        while block := f.read(1 << 22): crc = zlib.crc32(block, crc)
      found[str(path.relative_to(folder))] = [path.stat().st_size, crc]
  return found


def _problem(folder):
  """Why a folder is no whole checkpoint; None if it is one."""
  # Orbax could not delete a link.
  if folder.is_symlink() or not folder.is_dir(): return "it is no folder"
  if not (folder / _SEAL).is_file(): return f"{_SEAL} is missing"
  try:
    said, now = strict_json.read(folder / _SEAL), _checksums(folder)
  except (OSError, ValueError) as e:
    return f"it cannot be read: {e}".rstrip(".")
  if said.get("step") != int(folder.name): return f"it is of step {said.get('step')!r:.40}"
  if not isinstance(then := said.get("files"), dict): return f"{_SEAL} has no files"
  for name in sorted(then.keys() | now.keys()):
    if name not in now: return f"{name} is missing"
    if name not in then: return f"{name} is not in {_SEAL}"
    if now[name] != then[name]:
      return f"{name} was altered: [bytes, CRC-32] are {now[name]}, {then[name]!r:.60} were written"
  return None if now else "it is empty"


def _name(path):
  """Path as text, the same for records, tuples and the dicts orbax reports."""
  return ".".join(str(getattr(k, "key", getattr(k, "name", getattr(k, "idx", k))))
                  for k in path)
