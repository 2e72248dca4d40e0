"""W&B and MLflow as modules that only remember what they are told."""
import json
import sys
import types

import pytest

from rlx.io import metrics
from rlx.io import trackers

nan = float("nan")
ROWS = [dict(prompt="p", completion="c", verdict=1.0, advantages=[0.1, 0.2])]


@pytest.fixture
def wandb(monkeypatch):
  told = types.ModuleType("wandb")
  told.inits, told.logs, told.finished = [], [], 0
  told.Table = lambda columns, data: (columns, data)
  class Run:
    def log(self, values, step): told.logs.append((step, values))
    def finish(self): told.finished += 1
  told.init = lambda **kw: told.inits.append(kw) or Run()
  monkeypatch.setitem(sys.modules, "wandb", told)
  return told


@pytest.fixture
def mlflow(monkeypatch):
  told = types.ModuleType("mlflow")
  told.started, told.logs, told.files, told.ended = [], [], {}, 0
  def start_run(run_id, run_name):
    told.started.append((run_id, run_name))
    return types.SimpleNamespace(info=types.SimpleNamespace(
        run_id=run_id or f"id{len(told.started)}"))
  def end_run(): told.ended += 1
  told.start_run, told.end_run = start_run, end_run
  told.set_experiment = lambda name: None
  told.log_metrics = lambda values, step: told.logs.append((step, values))
  told.log_dict = lambda value, path: told.files.update({path: value})
  monkeypatch.setitem(sys.modules, "mlflow", told)
  return told


def _run(workdir, steps, names=("wandb", "mlflow"), **options):
  writer = metrics.Writer(workdir, trackers=names, config={"seed": 3}, **options)
  for step in steps:
    writer.table(step, ROWS)
    writer.write(step, {"a": step / 2, "b": nan})
  writer.close()


def test_each_is_told_all_in_order(wandb, mlflow, tmp_path):
  _run(tmp_path / "run", range(2))
  table = {"completions": (["prompt", "completion", "verdict"], [["p", "c", 1.0]])}
  # W&B takes no step before one that it has: scalars of 0 precede the table of 1.
  assert wandb.logs == [(0, table), (0, {"a": 0.0}), (1, table), (1, {"a": 0.5})]
  assert mlflow.logs == [(0, {"a": 0.0}), (1, {"a": 0.5})]
  assert mlflow.files == {"config.json": {"seed": 3}, "completions/000000.json": {"rows": ROWS},
                          "completions/000001.json": {"rows": ROWS}}
  assert wandb.inits[0]["config"] == {"seed": 3} and wandb.inits[0]["name"] == "run"
  assert mlflow.started == [(None, "run")]
  assert wandb.finished == mlflow.ended == 1
  assert [l["a"] for l in metrics.read(tmp_path / "run")] == [0, 0.5]
  assert list((tmp_path / "run" / "tensorboard").iterdir())


def test_a_resumed_run_goes_on_in_the_same_and_a_new_one_does_not(wandb, mlflow, tmp_path):
  _run(tmp_path, range(3))
  _run(tmp_path, range(2, 4), first_step=2)
  first, second = (i["id"] for i in wandb.inits)
  assert first == second and wandb.inits[1]["resume"] == "allow"
  assert mlflow.started == [(None, tmp_path.name), ("id1", tmp_path.name)]
  assert json.loads((tmp_path / "trackers.json").read_text()) == {
      "wandb": first, "mlflow": "id1"}
  _run(tmp_path, range(1))
  assert wandb.inits[2]["id"] != first and mlflow.started[2][0] is None


def test_the_project_is_that_of_the_environment(wandb, tmp_path, monkeypatch):
  _run(tmp_path, [], names=("wandb",))
  monkeypatch.setenv("WANDB_PROJECT", "mine")
  _run(tmp_path, [], names=("wandb",))
  assert [i["project"] for i in wandb.inits] == ["rlx", "mine"]


@pytest.mark.parametrize("name, package", [
    ("wandb", "wandb"), ("mlflow", "mlflow-skinny sqlalchemy alembic")])
@pytest.mark.parametrize("module", [None, types.ModuleType("a folder of that name")], ids=str)
def test_a_package_that_is_missing_is_one_line_with_the_command(
    monkeypatch, name, package, module):
  monkeypatch.setitem(sys.modules, name, module)
  with pytest.raises(ValueError, match=rf"^log.writers=\('{name}',\): .*; "
                     f"python -m pip install {package}$"):
    trackers.check((name,))


def test_nothing_is_imported_that_is_not_named(monkeypatch, tmp_path):
  for name in trackers.KINDS: monkeypatch.setitem(sys.modules, name, None)
  trackers.check(())
  _run(tmp_path, range(1), names=())
  assert not (tmp_path / "trackers.json").exists()


def test_one_that_does_not_start_is_refused(wandb, tmp_path):
  def init(**_): raise RuntimeError("no API key")
  wandb.init = init
  with pytest.raises(ValueError, match="log.writers=.*: wandb does not start: no API key"):
    _run(tmp_path, [])


def test_one_that_fails_ends_neither_the_run_nor_the_other(wandb, mlflow, tmp_path, capsys):
  def log_metrics(values, step):
    if step == 1: raise ConnectionError("away")
  mlflow.log_metrics = log_metrics
  _run(tmp_path, range(4))
  assert [s for s, _ in wandb.logs] == [0, 0, 1, 1, 2, 2, 3, 3] and wandb.finished == 1
  assert len(metrics.read(tmp_path)) == 4
  assert "completions/000001.json" in mlflow.files and "completions/000003.json" not in mlflow.files
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 1 and "mlflow failed" in lines[0] and "away" in lines[0]
