"""Metric backends: TensorBoard, Weights & Biases and MLflow, with one interface.

  scalars(step, {name: number})    finite numbers
  table(step, [row, ...])          sampled completions, one dict a row
  close()

A package is imported only if it is named. Its own environment variables configure it:
WANDB_MODE=offline, WANDB_PROJECT, MLFLOW_TRACKING_URI, MLFLOW_EXPERIMENT_NAME. The name of a
run is that of its workdir; its id is kept in <workdir>/trackers.json, so that a resumed run
continues it.
"""
from collections.abc import Callable, Mapping, Sequence
import importlib
import json
import os
import pathlib
import secrets
from typing import Any, Protocol

from rlx.io import strict_json

PROJECT = "rlx"


class Tracker(Protocol):
  """A metric backend."""
  close: Callable[[], object]
  def scalars(self, step: int, values: dict[str, float]) -> None: ...
  def table(self, step: int, rows: list[dict]) -> None: ...


class TensorBoard:
  """Event files in <workdir>/tensorboard, without completions."""

  def __init__(self, workdir, first_step):
    from tensorboardX import SummaryWriter  # pylint: disable=g-import-not-at-top
    self._events = SummaryWriter(str(workdir / "tensorboard"), purge_step=first_step)
    self.close = self._events.close

  def scalars(self, step, values):
    for k, v in values.items(): self._events.add_scalar(k, v, step)

  def table(self, step, rows): pass


class Wandb:
  """Weights & Biases, which ignores steps that it already has: a resumed run repeats some."""

  def __init__(self, workdir, run_id, config):
    import wandb  # pylint: disable=g-import-not-at-top
    self.id = run_id or secrets.token_hex(4)
    self._run = wandb.init(
        id=self.id, resume="allow", name=workdir.name, dir=str(workdir), config=config,
        project=os.environ.get("WANDB_PROJECT", PROJECT), allow_val_change=True)
    self._table, self.close = wandb.Table, self._run.finish

  def scalars(self, step, values):
    self._run.log(values, step=step)

  def table(self, step, rows):
    # Columns with a list of numbers per token would not be readable.
    shown = [{k: v for k, v in row.items() if not isinstance(v, list)} for row in rows]
    columns = list(shown[0]) if shown else []
    self._run.log({"completions": self._table(
        columns=columns, data=[[row[k] for k in columns] for row in shown])}, step=step)


class Mlflow:
  """MLflow; the completions of a step are an artifact, a JSON file."""

  def __init__(self, workdir, run_id, config):
    import mlflow  # pylint: disable=g-import-not-at-top
    self._mlflow, self.close = mlflow, mlflow.end_run
    mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT))
    self.id = mlflow.start_run(run_id=run_id, run_name=workdir.name).info.run_id
    mlflow.log_dict(config, "config.json")

  def scalars(self, step, values):
    # MLflow keeps all values that a metric was given at a step.
    self._mlflow.log_metrics(values, step=step)

  def table(self, step, rows):
    self._mlflow.log_dict({"rows": rows}, f"completions/{step:06d}.json")


# Name -> class, the first function of the package that it calls, what pip has to install. The
# last two packages are for MLflow's own data base, its default without MLFLOW_TRACKING_URI.
KINDS: dict[str, tuple[type[Wandb] | type[Mlflow], str, str]] = {
    "wandb": (Wandb, "init", "wandb"),
    "mlflow": (Mlflow, "start_run", "mlflow-skinny sqlalchemy alembic")}


def check(names: Sequence[str]) -> None:
  """Imports the named packages.

  Raises:
    ValueError: a name is unknown, or its package is not installed.
  """
  if unknown := [n for n in names if n not in KINDS]:
    raise ValueError(f"log.writers={names!r}: {unknown[0]!r} is none of {tuple(KINDS)}.")
  for name in names:
    _, function, package = KINDS[name]
    try:  # A folder that wandb or mlflow made can be imported too, as an empty package.
      getattr(importlib.import_module(name), function)
    except (ImportError, AttributeError) as e:
      raise ValueError(f"log.writers={names!r}: {e}; python -m pip install {package}") from None


def start(names: Sequence[str], workdir: pathlib.Path, first_step: int,
          config: Mapping[str, Any]) -> dict[str, Tracker]:
  """{name: tracker} of TensorBoard and the named backends.

  A run that starts at step 0 is a new run there, too.

  Raises:
    ValueError: a backend does not start.
  """
  trackers: dict[str, Tracker] = {"tensorboard": TensorBoard(workdir, first_step)}
  path = workdir / "trackers.json"
  workdir = workdir.absolute()  # Its name is that of the run.
  ids = json.loads(path.read_text()) if first_step and path.exists() else {}
  for name in names:
    try:
      tracker = trackers[name] = KINDS[name][0](workdir, ids.get(name), config)
    except Exception as e:  # Not logged in, no server: each package has its own errors.
      raise ValueError(f"log.writers={names!r}: {name} does not start: {e}") from e
    ids[name] = tracker.id
  if names: strict_json.write(path, ids)
  return trackers
