"""Metric backends; wandb and mlflow are mocks."""
import itertools
import json
import sys
import types
from unittest import mock

import pytest

from rlx.io import metrics, trackers

nan = float("nan")
ROWS = [dict(prompt="p", completion="c", verdict=1.0, advantages=[0.1, 0.2])]


@pytest.fixture
def wandb(monkeypatch):
  package = mock.MagicMock(Table=lambda columns, data: (columns, data))
  monkeypatch.setitem(sys.modules, "wandb", package)
  return package


@pytest.fixture
def mlflow(monkeypatch):
  package, numbers = mock.MagicMock(), itertools.count(1)
  package.start_run.side_effect = lambda run_id, run_name: types.SimpleNamespace(
      info=types.SimpleNamespace(run_id=run_id or f"id{next(numbers)}"))
  monkeypatch.setitem(sys.modules, "mlflow", package)
  return package


def _logs(log):
  """(step, values) of the calls of a function that logs."""
  return [(call.kwargs["step"], call.args[0]) for call in log.call_args_list]


def _run(workdir, steps, names=("wandb", "mlflow"), **options):
  writer = metrics.Writer(workdir, trackers=names, config={"seed": 3}, **options)
  for step in steps:
    writer.table(step, ROWS)
    writer.write(step, {"a": step / 2, "b": nan})
  writer.close()


def test_each_backend_gets_all_values_in_order(wandb, mlflow, tmp_path):
  _run(tmp_path / "run", range(2))
  table = {"completions": (["prompt", "completion", "verdict"], [["p", "c", 1.0]])}
  # W&B takes no step before one that it has: scalars of 0 precede the table of 1.
  assert _logs(wandb.init().log) == [(0, table), (0, {"a": 0.0}), (1, table), (1, {"a": 0.5})]
  assert _logs(mlflow.log_metrics) == [(0, {"a": 0.0}), (1, {"a": 0.5})]
  assert [call.args for call in mlflow.log_dict.call_args_list] == [
      ({"seed": 3}, "config.json"), ({"rows": ROWS}, "completions/000000.json"),
      ({"rows": ROWS}, "completions/000001.json")]
  options = wandb.init.call_args_list[0].kwargs
  assert options["config"] == {"seed": 3} and options["name"] == "run"
  mlflow.start_run.assert_called_once_with(run_id=None, run_name="run")
  wandb.init().finish.assert_called_once_with()
  mlflow.end_run.assert_called_once_with()
  assert [l["a"] for l in metrics.read(tmp_path / "run")] == [0, 0.5]
  assert list((tmp_path / "run" / "tensorboard").iterdir())


def test_a_resumed_run_goes_on_in_the_same_and_a_new_one_does_not(
    wandb, mlflow, tmp_path, monkeypatch):
  tensorboard = mock.MagicMock()
  monkeypatch.setattr("tensorboardX.SummaryWriter", tensorboard)
  _run(tmp_path, range(3))
  _run(tmp_path, range(2, 4), first_step=2)
  assert [call.kwargs["purge_step"] for call in tensorboard.call_args_list] == [0, 2]
  first, second = (call.kwargs["id"] for call in wandb.init.call_args_list)
  assert first == second and wandb.init.call_args.kwargs["resume"] == "allow"
  assert [call.kwargs["run_id"] for call in mlflow.start_run.call_args_list] == [None, "id1"]
  assert json.loads((tmp_path / "trackers.json").read_text()) == {"wandb": first, "mlflow": "id1"}
  _run(tmp_path, range(1))
  assert wandb.init.call_args.kwargs["id"] != first
  assert mlflow.start_run.call_args.kwargs["run_id"] is None


def test_the_project_is_that_of_the_environment(wandb, tmp_path, monkeypatch):
  _run(tmp_path, [], names=("wandb",))
  monkeypatch.setenv("WANDB_PROJECT", "mine")
  _run(tmp_path, [], names=("wandb",))
  assert [call.kwargs["project"] for call in wandb.init.call_args_list] == ["rlx", "mine"]


@pytest.mark.parametrize("name, package", [
    ("wandb", "wandb"), ("mlflow", "mlflow-skinny sqlalchemy alembic")])
@pytest.mark.parametrize("module", [None, types.ModuleType("a folder of that name")], ids=str)
def test_a_package_that_is_missing_is_one_line_with_the_command(monkeypatch, name, package, module):
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
  wandb.init.side_effect = RuntimeError("no API key")
  with pytest.raises(ValueError, match="log.writers=.*: wandb does not start: no API key"):
    _run(tmp_path, [])


def test_one_that_fails_ends_neither_the_run_nor_the_other(wandb, mlflow, tmp_path, capsys):
  mlflow.log_metrics.side_effect = [None, ConnectionError("away")]
  _run(tmp_path, range(4))
  assert [step for step, _ in _logs(wandb.init().log)] == [0, 0, 1, 1, 2, 2, 3, 3]
  assert len(metrics.read(tmp_path)) == 4
  assert mlflow.log_dict.call_args.args[1] == "completions/000001.json"
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 1 and "mlflow failed" in lines[0] and "away" in lines[0]
