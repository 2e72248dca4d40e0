"""Metrics and tables of a run: metrics.jsonl, completions.jsonl, and who else is told."""
import functools
import json
import math
import pathlib
import sys

import numpy as np

from rlx.io import strict_json
from rlx.io import trackers as trackers_lib


class Writer:
  """Appends to the files of a workdir; reads a step's metrics one step late.

  `write` keeps the (device) values it is given and converts those of the call
  before, so that the host never waits for the step just dispatched. The files are
  what counts: a tracker that fails is a line on stderr and is told nothing more.
  """

  def __init__(self, workdir, *, first_step=0, trackers=(), config=None, writes=True):
    """Drops lines of steps >= first_step: a resumed run writes them again.

    Args:
      writes: False only converts, for `last`: another process has the files.
      trackers: names of trackers.KINDS to tell beside TensorBoard.
      config: {key: value}, for them.
    Raises:
      ValueError: a tracker does not start.
    """
    self._dir, self._writes = pathlib.Path(workdir), writes
    self._pending, self._trackers = None, {}
    self.last = {}  # Newest converted metrics, for the progress bar.
    if not writes: return
    self._dir.mkdir(parents=True, exist_ok=True)
    for name in ("metrics.jsonl", "completions.jsonl"):
      _keep_before(self._dir / name, first_step)
    self._trackers = trackers_lib.start(trackers, self._dir, first_step, config or {})

  def write(self, step, metrics):
    """Queues {name: scalar}; NaN means unknown and is written as null."""
    self.flush()
    self._pending = (step, dict(metrics))

  def flush(self):
    """Writes what is queued; waits for its values."""
    if self._pending is None: return
    step, metrics = self._pending
    self._pending = None
    values = {k: float(np.asarray(v)) for k, v in metrics.items()}
    self.last = values
    if not self._writes: return
    line = {k: v if math.isfinite(v) else None for k, v in values.items()}
    _append(self._dir / "metrics.jsonl", [dict(step=step, **line)])
    self._tell("scalars", step, {k: v for k, v in values.items() if math.isfinite(v)})

  def table(self, step, rows):
    """Appends sampled completions, one dict a row."""
    self.flush()  # Trackers take steps in their order.
    if not self._writes: return
    _append(self._dir / "completions.jsonl", [dict(step=step, **r) for r in rows])
    self._tell("table", step, rows)

  def close(self):
    self.flush()
    self._tell("close")

  def _tell(self, what, *args):
    for name, tracker in list(self._trackers.items()):
      try:
        getattr(tracker, what)(*args)
      except Exception as e:  # A server that is away must not end the run.
        print(f"rlx: log.writers: {name} failed and is told no more: {e!r}; "
              f"{self._dir / 'metrics.jsonl'} has all.", file=sys.stderr)
        del self._trackers[name]


def read(workdir):
  """The lines of metrics.jsonl as dicts; null comes back as NaN. None yet is []."""
  is_line = lambda row: all(v is None or _is_number(v) for v in row.values())
  return [{k: math.nan if v is None else v for k, v in l.items()}
          for l in _whole(pathlib.Path(workdir) / "metrics.jsonl", is_line)]


def tables(workdir):
  """The rows of completions.jsonl as dicts, which have the step; none yet is []."""
  return _whole(pathlib.Path(workdir) / "completions.jsonl")


def summary(workdir):
  """summary.json of a finished run; {} without one.

  Raises:
    ValueError: it is not what a loop writes.
  """
  path = pathlib.Path(workdir) / "summary.json"
  if not path.exists(): return {}
  try:
    found = json.loads(path.read_bytes())  # Which may have NaN.
  except (ValueError, RecursionError) as e:
    raise ValueError(f"{path}: not JSON: {e}.") from None
  def has(x, *names):
    return isinstance(x, dict) and all(_is_number(x.get(name)) for name in names)
  def is_accuracy(x):
    return isinstance(x, dict) and all(has(x.get(name), "mean", "low", "high")
                                       for name in found["after"])
  is_right = has(found, "steps") and has(found.get("seconds"), "total", "to_first_step") and (
      "after" not in found or isinstance(found["after"], dict)  # train_prm has none.
      and is_accuracy(found["after"]) and is_accuracy(found.get("before")))
  if not is_right: raise ValueError(f"{path}: this is no summary of a run.")
  return found


def _append(path, rows):
  with path.open("a") as f:
    f.writelines(json.dumps(r) + "\n" for r in rows)


def _keep_before(path, step):
  if not path.exists(): return
  kept = [l for l in _whole(path) if l["step"] < step]
  strict_json.replace(path, "".join(json.dumps(l) + "\n" for l in kept))


def _whole(path, is_right=lambda row: True):
  """The lines of a .jsonl, but for half a line: a kill or a write under way leaves one
  at the end. After a kill it belongs to a step that is run again.

  Lines that nobody wrote so, as a failing disk leaves them, are left out; stderr says so.
  """
  if not path.exists(): return []
  found, wrong = [], []
  for i, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
    if not line.endswith(b"\n"): break
    try:
      row = json.loads(line)
    except (ValueError, RecursionError):
      row = None
    if (isinstance(row, dict) and type(row.get("step")) is int and 0 <= row["step"] < 2**31
        and is_right(row)): found.append(row)
    else: wrong.append(i)
  if wrong: _note(f"rlx: {path}: {len(wrong)} of {i} lines cannot be read and are left out, the "
                  f"first is line {wrong[0]}.")
  return found


@functools.cache
def _note(text):
  """Says it once."""
  print(text, file=sys.stderr)


def _is_number(x):
  return isinstance(x, int | float) and not isinstance(x, bool) and not abs(x) > 1e300
