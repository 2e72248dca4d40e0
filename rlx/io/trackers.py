"""Who is told of a run beside its files: TensorBoard, W&B, MLflow, behind one interface.

  scalars(step, {name: number})    finite ones
  table(step, [row, ...])          sampled completions, one dict a row
  close()

A package is imported only where it is named. Where it sends things, and whether at
all, its own environment says: WANDB_MODE=offline, WANDB_PROJECT, MLFLOW_TRACKING_URI,
MLFLOW_EXPERIMENT_NAME. The run's name is that of the workdir; its id there is kept in
<workdir>/trackers.json, so that a resumed run goes on in it.
"""
import importlib
import json
import os
import secrets

PROJECT = "rlx"


class TensorBoard:
  """Event files in <workdir>/tensorboard; of completions it gets none."""

  def __init__(self, workdir, first_step):
    from tensorboardX import SummaryWriter  # pylint: disable=g-import-not-at-top
    self._events = SummaryWriter(str(workdir / "tensorboard"), purge_step=first_step)

  def scalars(self, step, values):
    for k, v in values.items(): self._events.add_scalar(k, v, step)

  def table(self, step, rows): pass

  def close(self):
    self._events.close()


class Wandb:
  """Weights & Biases. Steps it has already, which a resumed run repeats, it leaves."""

  def __init__(self, workdir, run_id, config):
    import wandb  # pylint: disable=g-import-not-at-top
    self.id = run_id or secrets.token_hex(4)
    self._run = wandb.init(
        id=self.id, resume="allow", name=workdir.name, dir=str(workdir), config=config,
        project=os.environ.get("WANDB_PROJECT", PROJECT), allow_val_change=True)
    self._table = wandb.Table

  def scalars(self, step, values):
    self._run.log(values, step=step)

  def table(self, step, rows):
    # Lists of numbers per token would be columns that nobody can read.
    shown = [{k: v for k, v in row.items() if not isinstance(v, list)} for row in rows]
    columns = list(shown[0]) if shown else []
    self._run.log({"completions": self._table(
        columns=columns, data=[[row[k] for k in columns] for row in shown])}, step=step)

  def close(self):
    self._run.finish()


class Mlflow:
  """MLflow; completions are artifacts, a JSON file each time."""

  def __init__(self, workdir, run_id, config):
    import mlflow  # pylint: disable=g-import-not-at-top
    self._mlflow = mlflow
    mlflow.set_experiment(os.environ.get("MLFLOW_EXPERIMENT_NAME", PROJECT))
    self.id = mlflow.start_run(run_id=run_id, run_name=workdir.name).info.run_id
    mlflow.log_dict(config, "config.json")

  def scalars(self, step, values):
    # A metric of the same name and step again is one more point, not another value.
    self._mlflow.log_metrics(values, step=step)

  def table(self, step, rows):
    self._mlflow.log_dict({"rows": rows}, f"completions/{step:06d}.json")

  def close(self):
    self._mlflow.end_run()


# Name -> class, what of its package it calls first, what pip has to install. The last
# two are for MLflow's own data base, where it writes unless MLFLOW_TRACKING_URI is set.
KINDS = {"wandb": (Wandb, "init", "wandb"),
         "mlflow": (Mlflow, "start_run", "mlflow-skinny sqlalchemy alembic")}


def check(names):
  """Imports what is named.

  Raises:
    ValueError: an unknown name, or a package that is not installed.
  """
  if unknown := [n for n in names if n not in KINDS]:
    raise ValueError(f"log.writers={names!r}: {unknown[0]!r} is none of {tuple(KINDS)}.")
  for name in names:
    _, entry, package = KINDS[name]
    try:  # A folder of its name, which it makes itself, can be imported too.
      getattr(importlib.import_module(name), entry)
    except (ImportError, AttributeError) as e:
      raise ValueError(f"log.writers={names!r}: {e}; "
                       f"python -m pip install {package}") from None


def start(names, workdir, first_step, config):
  """{name: tracker} of TensorBoard and those named.

  A run that starts at step 0 is a new one there, too.

  Raises:
    ValueError: a tracker does not start.
  """
  found, path = {"tensorboard": TensorBoard(workdir, first_step)}, workdir / "trackers.json"
  workdir = workdir.absolute()  # Its name is the run's.
  ids = json.loads(path.read_text()) if first_step and path.exists() else {}
  for name in names:
    try:
      found[name] = KINDS[name][0](workdir, ids.get(name), config)
    except Exception as e:  # Not logged in, no server: whatever its package says.
      raise ValueError(f"log.writers={names!r}: {name} does not start: {e}") from e
    ids[name] = found[name].id
  if names: path.write_text(json.dumps(ids, indent=2))
  return found
