"""Metrics and tables of a run: metrics.jsonl, TensorBoard events, completions.jsonl."""
import json
import math
import pathlib

import numpy as np


class Writer:
  """Appends to the files of a workdir; reads a step's metrics one step late.

  `write` keeps the (device) values it is given and converts those of the call
  before, so that the host never waits for the step just dispatched.
  """

  def __init__(self, workdir, *, first_step=0):
    """Drops lines of steps >= first_step: a resumed run writes them again."""
    from tensorboardX import SummaryWriter  # pylint: disable=g-import-not-at-top
    self._dir = pathlib.Path(workdir)
    self._dir.mkdir(parents=True, exist_ok=True)
    for name in ("metrics.jsonl", "completions.jsonl"):
      _keep_before(self._dir / name, first_step)
    self._events = SummaryWriter(str(self._dir / "tensorboard"),
                                 purge_step=first_step)
    self._pending = None
    self.last = {}  # Newest converted metrics, for the progress bar.

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
    line = {k: v if math.isfinite(v) else None for k, v in values.items()}
    _append(self._dir / "metrics.jsonl", [dict(step=step, **line)])
    for k, v in values.items():
      if math.isfinite(v): self._events.add_scalar(k, v, step)

  def table(self, step, rows):
    """Appends sampled completions, one dict a row."""
    _append(self._dir / "completions.jsonl", [dict(step=step, **r) for r in rows])

  def close(self):
    self.flush()
    self._events.close()


def read(workdir):
  """The lines of metrics.jsonl as dicts; null comes back as NaN."""
  path = pathlib.Path(workdir) / "metrics.jsonl"
  lines = [json.loads(l) for l in path.read_text().splitlines()]
  return [{k: math.nan if v is None else v for k, v in l.items()} for l in lines]


def _append(path, rows):
  with path.open("a") as f:
    f.writelines(json.dumps(r) + "\n" for r in rows)


def _keep_before(path, step):
  if not path.exists(): return
  lines = path.read_text().splitlines()
  # A kill can leave half a line at the end; it belongs to a step run again.
  whole = [l for l in lines if l.endswith("}")]
  path.write_text("".join(l + "\n" for l in whole if json.loads(l)["step"] < step))
