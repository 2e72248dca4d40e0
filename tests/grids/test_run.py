"""Running a grid, with commands that cost nothing in place of training."""
import argparse
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import time

import pytest
from rich import console

from rlx.grids import cell as cell_lib, grid as grids, run

ROOT = pathlib.Path(__file__).parents[2]
# A run by the name of its arm: ok; flaky fails at first; bad always does; slow starts a
# process of its own, says both numbers and waits; preempted leaves as on SIGTERM at first.
STUB = """
import json, os, pathlib, subprocess, sys, time
folder = pathlib.Path(sys.argv[1])
arm = json.loads((folder / "cell.json").read_text())["arm"]
times = (folder / "times")
times.write_text(times.read_text() + "x" if times.exists() else "x")
print("cores", sorted(os.sched_getaffinity(0)), os.environ.get("CUDA_VISIBLE_DEVICES"))
if arm == "slow" and times.read_text() == "x":
  other = subprocess.Popen(["sh", "-c", "trap '' TERM; exec sleep 600"])
  (folder / "pids.part").write_text(f"{os.getpid()} {other.pid}")
  (folder / "pids.part").rename(folder / "pids")
  time.sleep(600)
if arm == "bad" or (arm == "flaky" and times.read_text() == "x"):
  sys.exit(f"{arm}: no luck")
(folder / "stopped.json").unlink(missing_ok=True)
if arm == "preempted" and times.read_text() == "x":
  (folder / "stopped.json").write_text("{}")
  sys.exit(143)
(folder / "metrics.jsonl").write_text('{"step": 0, "rollouts/accuracy": 0.5}\\n')
"""
GRID = """
def grid():
  return [dict(arm=a, seed=0, config="configs/quickstart.py:smoke") for a in {arms!r}]
"""


@pytest.fixture
def stub(tmp_path, monkeypatch):
  monkeypatch.chdir(ROOT)
  for module in (cell_lib, run): monkeypatch.setattr(module, "POLL_S", 0.02)
  (tmp_path / "stub.py").write_text(STUB)
  return f"{shlex.quote(sys.executable)} {tmp_path / 'stub.py'} {{folder}}"


def cells_of(*arms, seeds=1):
  return [cell_lib.Cell(a, s, "configs/quickstart.py:smoke", {}, i)
          for i, a in enumerate(arms) for s in range(seeds)]


def prepared(out, cells):
  folders = {c.name: out / c.name for c in cells}
  for c in cells: cell_lib.prepare(folders[c.name], c)
  return folders


@pytest.fixture
def screen():
  return console.Console(width=120, record=True, file=open(os.devnull, "w"))


def start(cells, folders, command, screen, workers=2):
  return run.run(cells, folders, run.Local(run.slots(workers), command), screen)


def times(folder):
  return len((folder / "times").read_text())


def exits(folder):
  return [a["exit"] for a in cell_lib.attempts(folder)]


def is_alive(pid):
  try:
    return "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
  except FileNotFoundError:
    return False


def test_failures_are_tried_again_and_reported_and_finished_cells_are_skipped(
    tmp_path, stub, screen):
  cells = cells_of("ok", "flaky", "bad", "fine")
  folders = prepared(tmp_path / "g", cells)
  ends = start(cells, folders, stub, screen)
  assert ends == {"ok-seed0": "done", "flaky-seed0": "done", "bad-seed0": "failed",
                  "fine-seed0": "done"}
  assert [exits(f) for f in folders.values()] == [[0], [1, 0], [1, 1], [0]]
  assert [cell_lib.state(f) for f in folders.values()] == ["done", "done", "failed", "done"]
  assert run.report(ends, folders, screen) == 1
  text = screen.export_text()
  assert "bad-seed0: exit status 1: bad: no luck" in text
  assert "again  flaky-seed0: " in text and "3 of 4 cells are finished." in text
  # The next call runs what is not finished, and that alone.
  assert start(cells, folders, stub, screen)["bad-seed0"] == "failed"
  assert [times(f) for f in folders.values()] == [1, 2, 4, 1]
  assert run.report({"ok-seed0": "done"}, folders, screen) == 0


def test_a_cell_has_its_cores_and_devices(tmp_path, stub, screen, monkeypatch):
  mine, told, tell = sorted(os.sched_getaffinity(0))[:1], [], os.sched_setaffinity
  monkeypatch.setattr(os, "sched_setaffinity", lambda *a: told.append(a) or tell(*a))
  cells = cells_of("ok")
  folders = prepared(tmp_path, cells)
  run.run(cells, folders, run.Local([(mine, {"CUDA_VISIBLE_DEVICES": "5"})], stub), screen)
  assert f"cores {mine} 5" in (folders["ok-seed0"] / "log.txt").read_text()
  assert told == [(0, mine)]
  monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3, 8, 9, 10})
  assert [c for c, _ in run.slots(2)] == [[0, 1, 2], [3, 8, 9, 10]]
  assert [env for _, env in run.slots(2)] == [{}, {}]
  assert [c for c, _ in run.slots(9)][:3] == [[0], [0], [1]]
  (_, one), (_, two), _ = run.slots(1, ["0", "2,3", "0"])
  assert one["CUDA_VISIBLE_DEVICES"] == one["TPU_VISIBLE_DEVICES"] == "0"
  assert one["XLA_PYTHON_CLIENT_MEM_FRACTION"] == "0.450"
  assert two["TPU_CHIPS_PER_PROCESS_BOUNDS"] == "1,2,1"
  assert "XLA_PYTHON_CLIENT_MEM_FRACTION" not in two
  assert one["TPU_PROCESS_PORT"] != two["TPU_PROCESS_PORT"]


def call(tmp_path, stub, *flags):
  (tmp_path / "g.py").write_text(GRID.format(arms=("slow", "ok")))
  return subprocess.Popen(
      [sys.executable, "-m", "rlx", "grid", str(tmp_path / "g.py"), "--out",
       str(tmp_path / "g"), "--command", stub, *flags], cwd=ROOT, text=True,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def pids(folder, process):
  """Of a slow cell and of what it started."""
  while not (folder / "pids").exists():
    assert process.poll() is None, process.stdout.read()
    time.sleep(0.05)
  return list(map(int, (folder / "pids").read_text().split()))


def test_ctrl_c_leaves_nothing_behind_and_the_next_call_goes_on(tmp_path, stub, screen):
  process, slow = call(tmp_path, stub), tmp_path / "g/slow-seed0"
  processes = pids(slow, process)
  assert all(map(is_alive, processes))
  process.send_signal(signal.SIGINT)
  assert process.wait(300) == 130 and "Stopped." in process.stdout.read()
  assert not any(map(is_alive, processes))
  assert cell_lib.state(slow) == "started" and exits(slow) == [None]
  # It was one at a time: the other cell has not begun.
  assert cell_lib.state(tmp_path / "g/ok-seed0") == "new"
  cells = cells_of("slow", "ok")
  ends = start(cells, prepared(tmp_path / "g", cells), stub, screen)
  assert set(ends.values()) == {"done"} and exits(slow) == [None, 0]


def test_a_cell_outlives_a_killed_call_and_is_not_started_twice(tmp_path, stub):
  process, slow = call(tmp_path, stub), tmp_path / "g/slow-seed0"
  processes = pids(slow, process)
  process.kill()
  process.wait()
  assert all(map(is_alive, processes))
  assert cell_lib.attempt(slow, stub) == "busy" and times(slow) == 1
  os.killpg(processes[0], signal.SIGKILL)
  deadline = time.time() + 300
  while (end := cell_lib.attempt(slow, stub)) == "busy" and time.time() < deadline: pass
  assert end == "done" and times(slow) == 2


def test_a_run_that_left_on_sigterm_is_not_finished(tmp_path, stub):
  folder = prepared(tmp_path, cells_of("preempted"))["preempted-seed0"]
  assert cell_lib.attempt(folder, stub) == "stopped"
  assert cell_lib.state(folder) == "started"
  assert cell_lib.attempt(folder, stub) == "done" and times(folder) == 2


def test_a_mark_that_was_not_written_whole_is_none(tmp_path, stub, monkeypatch):
  folder = prepared(tmp_path, cells_of("ok"))["ok-seed0"]
  def full(self, target): raise OSError(28, "No space left on device")
  with monkeypatch.context() as m:
    m.setattr(pathlib.Path, "replace", full)
    with pytest.raises(OSError): cell_lib.attempt(folder, stub)
  assert list(folder.glob("done.*.part")) and cell_lib.state(folder) == "started"
  assert cell_lib.attempt(folder, stub) == "done" and times(folder) == 2
  assert cell_lib.attempt(folder, stub) == "done" and times(folder) == 2


def test_the_command_is_rlx_train_on_the_changed_config(tmp_path, monkeypatch):
  monkeypatch.chdir(ROOT)
  cell = cell_lib.Cell("a", 4, "configs/quickstart.py:smoke", {"model.path": "/nowhere"}, 0)
  folder = prepared(tmp_path, [cell])["a-seed4"]
  assert cell_lib.attempt(folder) == "failed"
  line, = cell_lib.attempts(folder)
  assert line["exit"] == 2 and line["said"].startswith("rlx: model.path='/nowhere'")


def test_a_folder_of_another_cell_is_refused(tmp_path):
  cell = cell_lib.Cell("a", 0, "c", {"learner.loss": {"name": "x", "cap": 1}}, 0)
  prepared(tmp_path, [cell])
  run.refuse_another(tmp_path / "a-seed0", cell_lib.Cell("a", 0, "c", cell.changes, 7))
  for changes, message in (
      ({"learner.loss": {"name": "x", "cap": 2}}, "learner.loss.cap was 1 there, now 2;"),
      ({"steps": 3} | cell.changes, "steps was as in the config there, now 3;"),
      ({}, "learner.loss.name was 'x' there, now as in the config;")):
    with pytest.raises(ValueError, match=message):
      run.refuse_another(tmp_path / "a-seed0", cell_lib.Cell("a", 0, "c", changes, 0))


def test_the_dry_run_says_cells_and_cost(tmp_path, monkeypatch, screen):
  monkeypatch.chdir(ROOT)
  cells = cells_of("a", "b", seeds=2)
  cells[3] = cell_lib.Cell("c", 0, cells[3].config, {"rollouts.oversample": 1.5, "steps": 4}, 3)
  folders = prepared(tmp_path, cells)
  # 2 steps of 8 x 4 completions of 18 tokens; 4 steps of 12 x 4.
  assert run.cost(cells[0]) == (2, 64, 1152) and run.cost(cells[3]) == (4, 192, 3456)
  assert "no cell is finished" in run.plan(cells, folders)[1]
  for name, lines in (("a-seed0", (10.0, 20.0)), ("b-seed0", (60.0,))):
    (folders[name] / "attempts.jsonl").write_text("".join(
        json.dumps(dict(seconds=s, exit=0)) + "\n" for s in lines))
    (folders[name] / "done.json").write_text("{}")
  # Of its own arm 30 s; of an arm without one 90 s for 2304 tokens, 135 s for 3456.
  assert list(run.estimates(cells, folders).values()) == [30.0, 30.0, 60.0, 135.0]
  table, text = run.plan(cells, folders)
  assert text.startswith("4 cells, 2 to run: 6 steps, 256 completions if each step samples once, "
                         "4,608 tokens at most") and "0:02:45 in sequence" in text
  screen.print(table)
  shown = screen.export_text()
  assert "a-seed0" in shown and "done" in shown and "rollouts.oversample" in shown


def test_a_finished_cell_with_another_config_is_told_of(tmp_path, monkeypatch):
  monkeypatch.chdir(ROOT)
  cells = cells_of("a", seeds=2)
  folders = prepared(tmp_path, cells)
  for cell in cells:
    there = grids.make_config(cell).copy_and_resolve_references().to_dict()
    if cell.seed: there["eval"]["prompts"] = 5
    (folders[cell.name] / "config.json").write_text(json.dumps(there, default=list))
    (folders[cell.name] / "done.json").write_text("{}")
  line, = run.find_changed(cells, folders)
  assert line == "a-seed1 is finished, with eval.prompts=5, now 16; 1 keys differ."


def test_newest_line_is_a_whole_one(tmp_path):
  assert cell_lib.newest(tmp_path) == {}
  (tmp_path / "metrics.jsonl").write_text('{"step": 0}\n{"step": 1}\n{"step": 2, "a')
  assert cell_lib.newest(tmp_path) == {"step": 1}


def test_jobs_through_submitit(tmp_path, stub, screen):
  """submitit's executor that runs jobs in this process, in place of SLURM."""
  cells = cells_of("ok", "flaky", "bad")
  folders = prepared(tmp_path / "g", cells)
  executor = run.Slurm(dict(cluster="debug", timeout_min=5), stub, tmp_path / "slurm")
  ends = run.run(cells, folders, executor, screen)
  assert list(ends.values()) == ["done", "done", "failed"]
  assert exits(folders["flaky-seed0"]) == [1, 0]
  again = cell_lib.Job(stub).checkpoint(str(folders["bad-seed0"]))
  assert again.result() == "failed" and times(folders["bad-seed0"]) == 3


def test_flags():
  assert run._option("timeout_min=60") == ("timeout_min", 60)
  assert run._option("slurm_partition=gpu") == ("slurm_partition", "gpu")
  assert run._shard("1/3") == (1, 3)
  for bad in ("3/3", "1", "a/b"):
    with pytest.raises(argparse.ArgumentTypeError): run._shard(bad)
