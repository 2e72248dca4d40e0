"""Kills, preemption, damaged checkpoints, full disks, bad updates: nothing is lost."""
import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

from rlx import build
from rlx.core import records
from rlx.io import checkpoint, lock, metrics as io_metrics, preemption, progress, refusals
from rlx.learner import memory
from rlx.loops import rl
from rlx.models import size
from rlx.stages import collect, rewards_advantages
from rlx.verifiers import errors, pool
from tests import tiny

STEPS = 5


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  folder = tmp_path_factory.mktemp("model")
  tiny.write(folder, train=20)
  return folder


def config_of(model, **changes):
  """Twenty prompts, twelve a draw: epochs end within draws, and some groups are refilled."""
  return tiny.config(model, **dict(
      steps=STEPS, rollouts__per_prompt=2, rollouts__max_draws=2, learner__minibatches=1,
      eval__every=2, eval__prompts=4, eval__batch=4, checkpoint__every=1,
      checkpoint__max_to_keep=STEPS, log__completions_every=2) | changes)


def outcome(workdir):
  """What a run leaves, without what depends on the time."""
  summary = json.loads((workdir / "summary.json").read_text())
  del summary["seconds"]
  return tiny.lines(workdir), io_metrics.tables(workdir), summary


def assert_same(workdir, whole):
  for got, expected in zip(outcome(workdir), outcome(whole)): np.testing.assert_equal(got, expected)


@pytest.fixture(scope="module")
def run(model):
  return tiny.build_run(config_of(model))


@pytest.fixture(scope="module")
def train(run):
  """`rl.train` for configs that are built alike, which share what they compile."""
  start = run.prompts.state()

  def train(config, workdir):
    run.prompts.restore(start)
    with tiny.building(run): return rl.train(config, workdir)
  return train


@pytest.fixture(scope="module")
def whole(model, train, tmp_path_factory):
  """The workdir of a run that nothing happens to."""
  workdir = tmp_path_factory.mktemp("whole")
  train(config_of(model), workdir)
  return workdir


@pytest.fixture(scope="module")
def saved(run):
  """workdir -> (state, host state) of its newest whole checkpoint."""
  def read(workdir):
    state, host = tiny.restored(run, workdir)
    return state, dataclasses.replace(host, seconds=None, seconds_before=None)
  return read


def test_a_damaged_checkpoint_is_skipped_put_aside_and_written_again(
    model, train, whole, saved, tmp_path, capsys):
  workdir = tiny.killed_after(whole, 4, tmp_path / "run")
  checkpoints = workdir / "checkpoints"
  largest = max((checkpoints / "4/state").rglob("*"), key=lambda p: p.stat().st_size * p.is_file())
  os.truncate(largest, largest.stat().st_size // 2)
  assert saved(workdir)[0].step == 3
  err = capsys.readouterr().err
  assert "bytes, " in err and "checkpoints/4: " in err and "skipped" in err
  train(config_of(model), workdir)
  assert_same(workdir, whole)
  (state, host), (expected, expected_host) = saved(workdir), saved(whole)
  tiny.assert_equal_trees(state, expected)
  assert host == expected_host
  assert (checkpoints / "damaged-4").exists()


def test_what_the_resumes_cross(whole):
  """Epochs, waiting prompts, more than one draw, an update of the PRM."""
  hosts = [json.loads((whole / f"checkpoints/{k}/host/metadata").read_text())
           for k in range(1, STEPS)]
  assert {h["prompts"]["epoch"] for h in hosts} > {1}
  assert any(h["buffer"] for h in hosts)
  lines = io_metrics.read(whole)
  assert max(l["rollouts/draws"] for l in lines) == 2
  assert all(l["prm/grad_norm"] > 0 for l in lines)


def test_nothing_but_damaged_checkpoints_is_an_error(model, train, whole, tmp_path):
  workdir = tiny.killed_after(whole, 1, tmp_path / "run")
  (workdir / "checkpoints/1/host/metadata").unlink()
  with pytest.raises(ValueError, match="all checkpoints are damaged: {1: 'host/metadata is"):
    train(config_of(model), workdir)


def test_every_file_of_a_checkpoint_is_sealed(whole):
  folder = whole / "checkpoints/2"
  names = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
  sealed = set(json.loads((folder / checkpoint._SEAL).read_text())["files"])
  assert {n.rpartition("/")[2] for n in names - sealed} <= set(checkpoint._UNSEALED)
  assert len(sealed) > 5


@pytest.mark.parametrize("number", preemption.SIGNALS)
def test_a_signal_ends_the_step_saves_and_leaves(
    model, train, whole, tmp_path, monkeypatch, capsys, number):
  collect_batch = collect.Collect.__call__
  def preempted(self, state, host, step, clock):
    if step == 2: os.kill(os.getpid(), number)
    return collect_batch(self, state, host, step, clock)
  monkeypatch.setattr(collect.Collect, "__call__", preempted)
  before = signal.getsignal(number)
  assert train(config_of(model, checkpoint__every=STEPS), tmp_path) is None
  assert signal.getsignal(number) == before and preemption.Notice.stopped_by == number
  err = capsys.readouterr().err
  assert f"step 3 of {STEPS} is saved in {tmp_path}/checkpoints; the same command" in err
  assert json.loads((tmp_path / "stopped.json").read_text()) == dict(step=3, steps=STEPS)
  monkeypatch.undo()
  train(config_of(model), tmp_path)
  assert_same(tmp_path, whole)
  assert not (tmp_path / "stopped.json").exists()


def test_a_run_that_was_shorter_goes_on_as_one_of_all_steps(
    model, train, whole, saved, tmp_path, capsys):
  """Three steps and then five, where nothing was stopped."""
  assert train(config_of(model, steps=3), tmp_path)["steps"] == 3
  assert "continuing" not in capsys.readouterr().err
  train(config_of(model), tmp_path)
  assert f"rlx: continuing from step 3 in {tmp_path}.\n" in capsys.readouterr().err
  assert_same(tmp_path, whole)
  (state, host), (expected, expected_host) = saved(tmp_path), saved(whole)
  tiny.assert_equal_trees(state, expected)
  assert host == expected_host


def test_a_full_disk_is_said_before_the_start(model, train, tmp_path, monkeypatch):
  monkeypatch.setattr(shutil, "disk_usage", lambda _: types.SimpleNamespace(free=10**4))
  before = signal.getsignal(signal.SIGTERM)
  with pytest.raises(ValueError, match=r"checkpoints: 0.0 MB are free and a checkpoint takes"):
    train(config_of(model), tmp_path)
  assert not (tmp_path / "metrics.jsonl").exists()
  assert signal.getsignal(signal.SIGTERM) == before


def test_a_disk_that_fills_up_ends_the_run_with_the_step_saved(
    model, train, whole, tmp_path, monkeypatch):
  """Room again once the older checkpoint is gone, and no more after that."""
  def usage(folder):
    steps = [p for p in folder.iterdir() if p.name.isdigit()]
    return types.SimpleNamespace(free=0 if len(steps) > 1 else 10**9)
  monkeypatch.setattr(checkpoint.shutil, "disk_usage", usage)
  with pytest.raises(ValueError, match=r"step \d is saved, and the disk is full"):
    train(config_of(model), tmp_path)
  monkeypatch.undo()
  train(config_of(model), tmp_path)
  assert_same(tmp_path, whole)


def test_a_workdir_that_cannot_be_written_is_one_line(model, train, tmp_path):
  (tmp_path / "checkpoints").write_text("a file")
  with pytest.raises(ValueError, match="checkpoints: File exists"):
    train(config_of(model), tmp_path)


def test_updates_that_stay_non_finite_leave_batch_and_parameters(
    model, train, whole, saved, tmp_path, monkeypatch, capsys):
  shutil.copytree(tiny.killed_after(whole, 2, tmp_path / "run"), tmp_path / "copy")
  workdir = tmp_path / "run"
  compute = rewards_advantages.RewardsAdvantages.__call__
  def poisoned(self, state, placed):
    placed, metrics = compute(self, state, placed)
    return placed.with_columns(advantages_BT=placed.batch.advantages_BT * np.nan), metrics
  monkeypatch.setattr(rewards_advantages.RewardsAdvantages, "__call__", poisoned)
  with pytest.raises(ValueError, match="learner.max_skipped=2: that many .*stuck.npz has"):
    train(config_of(model, learner__max_skipped=2), workdir)
  monkeypatch.undo()
  batch = np.load(workdir / "stuck.npz")
  assert np.isnan(batch["batch.advantages_BT"]).all() and batch["rollouts.tokens_BS"].any()
  (state, _), (before, _) = saved(workdir), saved(tmp_path / "copy")
  assert state.step == 4
  tiny.assert_equal_trees(state.policy, before.policy)
  skipped = [l["policy/nonfinite"] for l in io_metrics.read(workdir)]
  assert skipped == [0, 0, 1, 1]
  # With a learning rate that may help: a harmless change, which is reported.
  summary = train(config_of(model, learner__max_skipped=2, learner__optimizer__lr=1e-3), workdir)
  assert summary["steps"] == STEPS
  assert "learner.optimizer.lr was 0.003 in this workdir, now 0.001" in capsys.readouterr().err


def test_the_record_says_what_trained_each_step(model, train, whole, tmp_path, capsys):
  """A changed key with the first step that it trains; after the last step nothing changes."""
  entropy = lambda workdir: json.loads((workdir / "config.json").read_text())["learner"][
      "entropy_coef"]
  workdir = tiny.killed_after(whole, 2, tmp_path / "run")
  before = entropy(workdir)
  train(config_of(model, learner__entropy_coef=0.5), workdir)
  change = dict(step=2, key="learner.entropy_coef", before=before, after=0.5)
  assert [json.loads(x) for x in (workdir / "changes.jsonl").read_text().splitlines()] == [change]
  assert entropy(workdir) == 0.5
  files = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in workdir.rglob("*") if p.is_file()
           and p.name != "run.lock"}
  capsys.readouterr()
  summary = train(config_of(model, learner__entropy_coef=0.25), workdir)
  assert summary == json.loads((workdir / "summary.json").read_text())
  assert files == {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in files}
  assert ("learner.entropy_coef was 0.5 in this workdir, now 0.25, and nothing is trained with "
          f"it: all {STEPS} steps are done.") in capsys.readouterr().err


def test_two_runs_do_not_write_to_one_folder(model, train, tmp_path):
  """A lock that a process left behind holds nothing."""
  (tmp_path / "run.lock").write_text("elsewhere, process 1, since 2020\n")
  with lock.hold(tmp_path / "run.lock"):
    with pytest.raises(ValueError, match=rf"a run is writing there \(.*, process {os.getpid()}, "
                                         r"since .*\); end it, or name another folder."):
      train(config_of(model), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["run.lock"]
  code = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, 2); print(1, flush=True); input()"
  other = subprocess.Popen([sys.executable, "-c", code, tmp_path / "run.lock"],
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE)
  other.stdout.readline()
  with pytest.raises(lock.Held), lock.hold(tmp_path / "run.lock"): pass
  other.kill()
  other.communicate()
  with lock.hold(tmp_path / "run.lock"): pass


@pytest.mark.parametrize("key, value", [
    ("seed", 1), ("prompts__max_tokens", 9), ("eval__prompts", 6), ("lora__alpha", 8.0)])
def test_a_resume_refuses_what_contradicts(model, train, whole, tmp_path, key, value):
  workdir = tiny.killed_after(whole, 2, tmp_path / "run")
  before = (workdir / "config.json").read_text()
  dotted = key.replace("__", ".")
  with pytest.raises(ValueError, match=rf"^{dotted}={value!r}: .* has checkpoints of a run with"):
    train(config_of(model, **{key: value}), workdir)
  assert (workdir / "config.json").read_text() == before


def test_a_resume_decodes_as_many_rows_at_once_as_before(model, run, tmp_path, monkeypatch):
  """Whatever memory the device has then: other slots are other bits of log-probs."""
  c, built = config_of(model, memory_check="off", eval__every=0), build.build
  slots = []
  row = (4 + 4 + 4) * size.kv_bytes_per_token(run.passes.models["policy"])
  held = memory.tree_bytes(run.shapes())

  def build_and_note(*args, **options):
    slots.append((resumed := built(*args, **options)).sampling.slots)
    return tiny.share_programs(resumed)

  def train(steps, rows):
    monkeypatch.setattr(memory, "device_bytes", lambda mesh: held + round(rows * row / 0.3) + 1)
    c.steps = steps
    rl.train(c, tmp_path)

  monkeypatch.setattr(build, "build", build_and_note)
  train(1, 6)
  train(2, 1000)
  assert slots == 2 * [dict(train=6, greedy=None, sampled=None)]
  assert built(c).sampling.slots["train"] is None
  (tmp_path / "versions.json").write_text("{")
  with pytest.raises(ValueError, match="^.*versions.json: "): train(3, 6)


def test_a_changed_state_is_refused_by_name(model, whole, tmp_path):
  workdir = tiny.killed_after(whole, 2, tmp_path / "run")
  with pytest.raises(ValueError, match="checkpoints/2: .*sampler"):
    rl.train(config_of(model, rollouts__sync_every=2), workdir)


def test_a_silence_prints_every_stack_once(capfd):
  clock, err, end = progress.Clock(silence_s=1.0), "", time.monotonic() + 60
  clock.lap("sample")
  while "test_a_silence_prints" not in err and time.monotonic() < end:
    time.sleep(0.1)
    err += capfd.readouterr().err
  time.sleep(1.5)
  err += capfd.readouterr().err
  assert err.count("Timeout (0:00:01)!") == 1 and "test_a_silence_prints" in err
  clock.lap("verify")
  clock.close()
  time.sleep(1.5)
  assert not capfd.readouterr().err


def test_an_error_of_the_disk_is_one_line(capsys):
  def full(): raise OSError(28, "No space left on device", "/full/metrics.jsonl")
  with pytest.raises(SystemExit) as ended: refusals.run_refusing(full, again="run again to go on.")
  assert ended.value.code == 1  # The same command may succeed later.
  assert capsys.readouterr().err == (
      "rlx: /full/metrics.jsonl: No space left on device; run again to go on.\n")


def test_a_verifier_that_is_down_is_one_line(capsys):
  def down(prompt, text): raise errors.Unknown("no reply")
  down.is_bounded = True
  verifiers = pool.Pool(0, 50.0, functions=dict(down=down))
  verifiers.verify([records.Prompt("p", "?", "1", "down")], ["1"])
  with pytest.raises(SystemExit) as ended:
    refusals.run_refusing(lambda: verifiers.check(0.1), again="")
  assert ended.value.code == 1
  assert capsys.readouterr().err == (
      "rlx: verifier.max_error_rate=0.1: 1 of the last 1 verdicts are unknown (since the start: "
      "unknown 1; last message: no reply).\n")
  sizes = dict.fromkeys(range(2))
  def grow():
    for i in sizes: sizes[-i - 1] = 0  # "dictionary changed size during iteration"
  with pytest.raises(RuntimeError): refusals.run_refusing(grow, again="")


_TRAIN = """
import pathlib, sys
from rlx.loops import rl
from tests import conftest  # Devices and flags, before jax starts.
from tests import test_resume
rl.train(test_resume.long_config_of(pathlib.Path(sys.argv[1]), int(sys.argv[3])), sys.argv[2])
"""


def long_config_of(model, steps):
  return config_of(model, steps=steps, checkpoint__max_to_keep=2, eval__every=0)


def test_kills_at_random_moments_lose_no_more_than_a_step(model, train, tmp_path, request):
  """One here, fifty with --soak: in steps, in writes of checkpoints and of metrics."""
  kills = 50 if request.config.getoption("--soak") else 1
  steps, seconds = 12 * kills, np.random.default_rng(0)
  workdir, log = tmp_path / "run", tmp_path / "log.txt"
  def newest(): return max((int(p.name) for p in (workdir / "checkpoints").glob("[0-9]*")
                            if p.name.isdigit()), default=0)
  train(long_config_of(model, steps), tmp_path / "whole")
  for _ in range(kills):
    before = newest()
    with log.open("a") as file:
      process = subprocess.Popen(
          [sys.executable, "-c", _TRAIN, model, workdir, str(steps)], stdout=file, stderr=file,
          cwd=pathlib.Path(__file__).parent.parent, start_new_session=True)
    while newest() < before + 2 and process.poll() is None: time.sleep(0.01)
    time.sleep(seconds.uniform(0, 0.5))
    reached = newest()
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL, log.read_text()[-2000:]
    assert newest() >= reached
  train(long_config_of(model, steps), workdir)
  assert_same(workdir, tmp_path / "whole")


_CONFIG = """
import pathlib
from tests import test_resume
def get_config(): return test_resume.long_config_of(pathlib.Path({model!r}), 10**6)
"""
_WAITING = """
import sys, time
from tests import conftest  # Devices and flags, before jax starts.
from rlx import cli
from rlx.stages import collect
collect_batch = collect.Collect.__call__
def wait(self, state, host, step, clock):
  if step == 1 and waits:
    print("It waits.", flush=True)
    while True: time.sleep(0.1)  # A wait without end may miss a signal that comes just before it.
  return collect_batch(self, state, host, step, clock)
collect.Collect.__call__ = wait
waits = sys.argv.pop() == "wait"
cli.main()
"""


@pytest.mark.parametrize("waits", [False, True])
def test_ctrl_c_ends_a_process_with_130_and_without_a_traceback(model, tmp_path, waits):
  """Once after its step, which is saved; the second time at once, in a step that never ends."""
  config, workdir = tmp_path / "long.py", tmp_path / "run"
  config.write_text(_CONFIG.format(model=str(model)))
  process = subprocess.Popen(
      [sys.executable, "-c", _WAITING, "train", str(config), f"workdir={workdir}",
       "wait" if waits else "go"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
      cwd=pathlib.Path(__file__).parent.parent, start_new_session=True)
  limit, said = threading.Timer(600, process.kill), []
  limit.start()
  for line in process.stdout:  # It prints that the first signal was received before the second.
    said.append(line)
    if ("It waits." if waits else "compiling: ") in line or waits and "to end at once" in line:
      process.send_signal(signal.SIGINT)
  limit.cancel()
  text = "".join(said)
  assert process.wait() == 130, text
  assert "Traceback" not in text and "to end at once" in text
  assert (workdir / "stopped.json").exists() == ("the same command" in text) == (not waits)
