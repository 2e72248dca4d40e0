"""Metrics and sampled completions of a run: metrics.jsonl, completions.jsonl, metric backends."""
from collections.abc import Callable, Mapping, Sequence
import functools
import json
import math
import pathlib
import sys
from typing import Any

from rlx.io import strict_json, trackers as trackers_lib


class Writer:
  """Appends to the files of a workdir; converts the metrics of a step one step later.

  `write` keeps the (device) values that it is given and converts those of the call before, so
  that the host does not wait for the step that was just dispatched. The files are complete in
  any case: a metric backend that fails is reported on stderr and not called again.
  """

  def __init__(self, workdir: str | pathlib.Path, *, first_step: int = 0,
               trackers: Sequence[str] = (), config: Mapping[str, Any] | None = None,
               writes: bool = True, fetch: Callable[[dict], dict] = dict):
    """Drops lines of steps >= first_step: a resumed run writes them again.

    Args:
      writes: False only converts, for `last`: another process writes the files.
      trackers: names of trackers.KINDS, in addition to TensorBoard.
      config: {key: value}, for the metric backends.
      fetch: transfers a dict of device arrays to the host.
    Raises:
      ValueError: a metric backend does not start.
    """
    self._dir, self._writes, self._fetch = pathlib.Path(workdir), writes, fetch
    self._pending: tuple[int, dict] | None = None
    self._trackers: dict[str, trackers_lib.Tracker] = {}
    self.last: dict[str, float] = {}  # The newest converted metrics, for the progress bar.
    if not writes: return
    self._dir.mkdir(parents=True, exist_ok=True)
    for path in (self._dir / "metrics.jsonl", self._dir / "completions.jsonl"):
      if path.exists():
        strict_json.replace(path, _lines(r for r in _read(path) if r["step"] < first_step))
    self._trackers = trackers_lib.start(trackers, self._dir, first_step, config or {})

  def write(self, step: int, metrics: Mapping[str, Any]) -> None:
    """Queues {name: scalar}; NaN means unknown and is written as null."""
    self.flush()
    self._pending = (step, dict(metrics))

  def flush(self) -> None:
    """Writes the queued metrics; waits for their values."""
    if self._pending is None: return
    (step, metrics), self._pending = self._pending, None
    self.last = {k: float(v) for k, v in self._fetch(metrics).items()}
    if not self._writes: return
    finite = {k: v for k, v in self.last.items() if math.isfinite(v)}
    self._append("metrics.jsonl", [dict.fromkeys(self.last) | finite], step)
    self._call("scalars", step, finite)

  def table(self, step: int, rows: list[dict]) -> None:
    """Appends sampled completions, one dict a row."""
    self.flush()  # Metric backends need the steps in order.
    if not self._writes: return
    self._append("completions.jsonl", rows, step)
    self._call("table", step, rows)

  def close(self) -> None:
    """Writes the queued metrics and closes the metric backends."""
    self.flush()
    self._call("close")

  def _append(self, name, rows, step):
    with (self._dir / name).open("a") as f: f.write(_lines(dict(step=step, **r) for r in rows))

  def _call(self, method, *args):
    for name, tracker in list(self._trackers.items()):
      try:
        getattr(tracker, method)(*args)
      except Exception as e:  # A server that does not answer must not end the run.
        print(f"rlx: log.writers: {name} failed and is not used any more: {e!r}; "
              f"{self._dir / 'metrics.jsonl'} has all metrics.", file=sys.stderr)
        del self._trackers[name]


def read(workdir: str | pathlib.Path) -> list[dict]:
  """The lines of metrics.jsonl as dicts, with NaN for null; [] if there are none yet."""
  is_valid = lambda row: all(v is None or _is_number(v) for v in row.values())
  return [{k: math.nan if v is None else v for k, v in row.items()}
          for row in _read(pathlib.Path(workdir) / "metrics.jsonl", is_valid)]


def tables(workdir: str | pathlib.Path,
           is_valid: Callable[[dict], bool] = lambda row: True) -> list[dict]:
  """The valid rows of completions.jsonl as dicts, with their step; [] if there are none yet."""
  return _read(pathlib.Path(workdir) / "completions.jsonl", is_valid)


def summary(workdir: str | pathlib.Path) -> dict:
  """summary.json of a finished run; {} without one.

  Raises:
    ValueError: the file is not a summary that a training loop wrote.
  """
  path = pathlib.Path(workdir) / "summary.json"
  if not path.exists(): return {}
  _check_is_file(path)
  try:
    value = json.loads(path.read_bytes())  # May have NaN.
    numbers = [value["steps"], value["seconds"]["total"], value["seconds"]["to_first_step"]]
    if "after" in value:  # A run of train_scorer has no accuracies.
      numbers += [value[when][name][k] for name in value["before"].keys() | value["after"].keys()
                  for when in ("before", "after") for k in ("mean", "low", "high")]
    if all(map(_is_number, numbers)): return value
  except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
    pass  # Something else is in the file, which is said below.
  raise ValueError(f"{path}: this is no summary of a run.")


def judging(workdir: str | pathlib.Path) -> dict | None:
  """judging.json, what `rlx evaluate` measured of a scorer or judge; None without the file.

  Raises:
    ValueError: the file is none that tools/judging.py wrote.
  """
  path = pathlib.Path(workdir) / "judging.json"
  if not path.exists(): return None
  _check_is_file(path)
  ends = ("mean", "low", "high")
  try:
    value = json.loads(path.read_bytes())  # May have NaN.
    metrics, best, kl, bins = (value.get(key, kind) for key, kind in (
        ("metrics", {}), ("best_of_n", []), ("kl", []), ("reliability", [])))
    numbers = [x[k] for x in metrics.values() for k in (*ends, "prompts")]
    for point in (*best, *kl):
      names = [name for name in point if name not in ("n", "kl")]
      numbers += [point["kl"], *(point[name][k] for name in names for k in ends)]
    if any(type(x["n"]) is not int or not 0 < x["n"] < 2**31 for x in best): raise ValueError
    if any(set(x) != set(points[0]) for points in (best, kl) for x in points): raise ValueError
    numbers += [x[k] for x in bins for k in (
        "low_edge", "high_edge", "n", "prompts", "predicted", "right", "low", "high")]
    beside = [x for figures in value.get("published", {}).values() for x in figures]
    numbers += [x["value"] for x in beside] + [value["count"]]
    texts = [value["judged"], value["rows"], value["kind"],
             *(x[k] for x in beside for k in ("of", "source"))]
    fits = [x for key in ("best_of_n_fit", "kl_fit") for x in value.get(key, {}).values()]
    is_fit = lambda x: isinstance(x, float) or _is_number(x)
    if (all(map(_is_number, numbers)) and all(isinstance(x, str) for x in texts)
        and all(map(is_fit, fits))): return value
  except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
    pass  # Something else is in the file, which is said below.
  raise ValueError(f"{path}: this is nothing that rlx evaluate wrote about a scorer or judge.")


def _lines(rows):
  return "".join(json.dumps(row) + "\n" for row in rows)


def _read(path, is_valid=lambda row: True):
  """The rows of a .jsonl. An incomplete last line, which a kill or a concurrent write leaves, is
  ignored: after a kill its step is run again. Damaged lines are reported on stderr and skipped.
  """
  if not path.exists(): return []
  _check_is_file(path)
  rows, damaged = [], []
  for i, line in enumerate(path.read_bytes().splitlines(keepends=True), 1):
    if not line.endswith(b"\n"): break
    try:
      row = json.loads(line)
    except (ValueError, RecursionError):
      row = None
    if (isinstance(row, dict) and type(row.get("step")) is int and 0 <= row["step"] < 2**31
        and is_valid(row)): rows.append(row)
    else: damaged.append(i)
  if damaged:
    _note(f"rlx: {path}: {len(damaged)} of {i} lines cannot be read and are left out, the first is "
          f"line {damaged[0]}.")
  return rows


def _check_is_file(path):
  """A pipe or a device would never end."""
  if not path.is_file(): raise ValueError(f"{path}: this is no file.")


@functools.cache
def _note(text):
  """Prints a message once."""
  print(text, file=sys.stderr)


def _is_number(x):
  return isinstance(x, int | float) and not isinstance(x, bool) and not abs(x) > 1e300
