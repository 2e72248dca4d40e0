"""Damaged files of a workdir: a line on stderr, or one that ends the program."""
import json
import math
import pathlib
import shutil
import types

import pytest

from configs import base, quickstart
from rlx.core import records
from rlx.io import metrics as io_metrics, refusals, run_folder
from rlx.loops import record, session
from rlx.tools import view

ACCURACY = dict(mean=0.5, low=0.4, high=0.6)
SUMMARY = dict(before=dict(greedy=ACCURACY), after=dict(greedy=ACCURACY), steps=2, seed=0,
               prm_accuracy=math.nan, seconds=dict(total=1.0, to_first_step=0.5))
ROW = dict(prompt="3m4=", completion="3#3", verdict=1.0, finish="eos", tokens=["3#3", ""],
           log_ratio=[0.5, -1.0], beta=0.05, advantages=[1.0, math.nan])


@pytest.fixture(scope="module")
def written(tmp_path_factory):
  """The files of a run of two steps, as its loop writes them."""
  folder = tmp_path_factory.mktemp("written")
  record.record(base.get_config(), folder, device_bytes=None)
  writer = io_metrics.Writer(folder)
  for step in range(2):
    writer.write(step, {"rollouts/accuracy": 0.25, "seconds/sample": math.nan})
    writer.table(step, [ROW])
  writer.close()
  (folder / "checkpoints" / "1").mkdir(parents=True)
  io_metrics.strict_json.write(folder / "summary.json", SUMMARY)
  return folder


@pytest.fixture
def workdir(written, tmp_path):
  """A copy of these files, for damage."""
  return shutil.copytree(written, tmp_path / "run")


def _json(name, **change):
  """Keys of a JSON file, or dropped with None."""
  def damage(workdir):
    entries = json.loads((workdir / name).read_text()) | change
    (workdir / name).write_text(json.dumps({k: v for k, v in entries.items() if v is not None}))
  return damage


def _text(name, text): return lambda workdir: (workdir / name).write_text(text)
def _cut(name): return lambda workdir: (workdir / name).write_text(
    (workdir / name).read_text()[:99])


def _folder(name):
  def damage(workdir):
    (workdir / name).unlink()
    (workdir / name).mkdir()
  return damage


@pytest.mark.parametrize("damage, message", [
    (_cut("config.json"), "config.json: not JSON"), (_text("config.json", "{}"), "it has no seed"),
    (_text("config.json", "[]"), "config.json: an object is needed"),
    (_json("config.json", steps="2"), "it has no steps"),
    (_json("config.json", model=5), "it has no model.path"),
    (_json("config.json", prm=dict(loss=None)), "it has no prm.loss.name"),
    (_text("config.json", "\0" * 99), "config.json: not JSON"),
    (_folder("config.json"), "config.json: no such file"),
    (_cut("versions.json"), "versions.json: not JSON"),
    (_text("versions.json", "[]"), "versions.json: an object"),
    (_json("versions.json", device_bytes="8"), "versions.json: device_bytes='8' is no size"),
    (_json("versions.json", device_bytes=-1), "device_bytes=-1 is no size"),
    (_json("versions.json", commit=5), "versions.json: commit=5 is no text")])
def test_a_resume_and_a_page_refuse_in_one_line(workdir, damage, message):
  damage(workdir)
  for call in (lambda: record.record(base.get_config(), workdir), lambda: view.view(workdir)):
    with pytest.raises(ValueError, match=message) as e: call()
    assert refusals._is_raised_here(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("damage", [
    _cut("summary.json"), _text("summary.json", "[]"), _json("summary.json", steps="2"),
    _json("summary.json", seconds=3), _json("summary.json", after=[]),
    _json("summary.json", before=None), _text("summary.json", "[" * 10**5),
    _json("summary.json", after=dict(greedy=dict(mean="a")))])
def test_a_page_refuses_a_summary_in_one_line(workdir, draw_curves, damage):
  damage(workdir)
  for call in (view.view, draw_curves):
    with pytest.raises(ValueError, match="^.*summary.json: (not JSON|this is no summary)"):
      call(workdir)


LINES = [
    b"\0" * 50, b"{", b"[]", b"5", b'{"a": 1}', b'{"step": "1"}', b'{"step": -1}',
    b'{"step": true}', b'{"step": 1.5}', b'{"step": 1, "a": "b"}', b'{"step": 1, "a": [1]}',
    b'{"step": 1, "a": 1e999}',
    b"\xff\xfe", b"[" * 10**5, b'{"step": 1, "a": ' + b"9" * 400 + b"}", b"not json}"]
COMPLETIONS = [
    dict(prompt=5), dict(completion=None), dict(verdict="1"), dict(finish=[]), dict(tokens=["a"]),
    dict(tokens=5), dict(tokens=[1, 2]), dict(log_ratio=[1.0]), dict(log_ratio="gone"),
    dict(verdict="gone"), dict(log_ratio=["a", "b"]), dict(advantages=None),
    dict(advantages=[True, 1.0]), dict(beta="a"), dict(step="0"), dict(finish="late"),
    dict(turns=[0]), dict(turns=[0, 1.5]), dict(prompt_tokens="7")]


def _add_completion(workdir, change):
  row = {k: v for k, v in (dict(step=1, **ROW) | change).items() if v != "gone"}
  with (workdir / "completions.jsonl").open("a") as f: f.write(json.dumps(row) + "\n")


@pytest.mark.parametrize("line", LINES)
def test_damaged_lines_of_metrics_are_left_out(workdir, capsys, line):
  path = workdir / "metrics.jsonl"
  first, second = path.read_bytes().splitlines(keepends=True)
  path.write_bytes(first + line + b"\n" + second + b'{"step": 2, "half')
  assert [l["step"] for l in io_metrics.read(workdir)] == [0, 1]
  io_metrics.Writer(workdir, first_step=1)
  assert path.read_bytes() == first
  assert capsys.readouterr().err == (
      f"rlx: {path}: 1 of 4 lines cannot be read and are left out, the first is line 2.\n")


@pytest.mark.parametrize("change", COMPLETIONS)
def test_damaged_completions_are_left_out_of_the_page(workdir, capsys, change):
  _add_completion(workdir, change)
  assert len(io_metrics.tables(workdir, view._is_row)) == 2
  assert capsys.readouterr().err.count("\n") == 1


def test_damaged_lines_are_left_out_of_page_and_curves(workdir, draw_curves, capsys):
  with (workdir / "metrics.jsonl").open("ab") as f: f.write(b"\n".join(LINES) + b"\n")
  for change in COMPLETIONS: _add_completion(workdir, change)
  assert view.view(workdir).exists() and draw_curves(workdir).exists()
  error = capsys.readouterr().err
  assert "metrics.jsonl: 16 of 18 lines cannot" in error
  assert "completions.jsonl: 19 of 21 lines" in error


@pytest.mark.parametrize("name", ["metrics.jsonl", "completions.jsonl", "summary.json"])
def test_a_folder_for_a_file_is_one_line(workdir, capsys, name):
  _folder(name)(workdir)
  with pytest.raises(SystemExit) as ended:
    refusals.run_refusing(lambda: view.view(workdir), again="")
  error = capsys.readouterr().err
  assert ended.value.code == 2 and error.startswith("rlx: ") and error.count("\n") == 1


def test_a_write_that_is_cut_leaves_what_was_there(workdir, monkeypatch):
  def full(path, text):
    with path.open("w") as f: f.write(text[:9])
    raise OSError(28, "No space left on device")
  monkeypatch.setattr(pathlib.Path, "write_text", full)
  before = (workdir / "metrics.jsonl").read_bytes()
  with pytest.raises(OSError): io_metrics.Writer(workdir, first_step=1)
  with pytest.raises(OSError): record.record(base.get_config(), workdir)
  assert (workdir / "metrics.jsonl").read_bytes() == before
  assert run_folder.read_config(workdir)["steps"] == base.get_config().steps


def test_a_baseline_is_drawn_only_for_the_same_prompts(tmp_path):
  config = quickstart.get_config()
  record_run = lambda c, name: record.record(c, tmp_path / name)
  recorded = record_run(config, "baseline")
  with pytest.raises(ValueError, match="log.baseline=.*: the folder of a run; it has no metrics"):
    session._baseline(str(tmp_path / "baseline"), recorded)
  (tmp_path / "baseline" / "metrics.jsonl").write_text("")
  assert session._baseline(str(tmp_path / "baseline"), recorded) == tmp_path / "baseline"
  config.prompts.options.n_max += 1
  assert session._baseline(str(tmp_path / "baseline"), record_run(config, "other")) is None
  assert session._baseline(None, recorded) is None


def test_a_checkpoint_of_an_earlier_version_keeps_its_first_evaluation():
  state = records.TrainState(step=3, policy=None, policy_opt=None)
  checkpoints = types.SimpleNamespace(
      latest=3, restore=lambda *_: (state, dict(before=dict(greedy=1), stuck=2)))
  _, host = session.restore(checkpoints, lambda: state)
  assert (host.initial_eval, host.stuck) == (dict(greedy=1), 2)
