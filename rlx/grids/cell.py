"""A cell of a grid: its folder, and an attempt to finish it.

The folder is the workdir of a run (config.json, versions.json, metrics.jsonl, checkpoints,
summary.json, see rlx/loops/rl.py). It also contains:

  cell.json        the definition of the cell: arm, seed, config file, changes
  log.txt          the output of all attempts
  attempts.jsonl   one line per attempt: start, seconds, exit status (null: stopped) and the
                   last line of its output
  done.json        marks the cell as finished; it is written last, atomically
  lock             held during an attempt by this program and by the run; names the process

The folder can be used as a config:

  rlx evaluate FOLDER
"""
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import threading
import time

from rlx.io import lock, preemption

COMMAND = shlex.join([sys.executable, "-m", "rlx.train",
                      f"--config={pathlib.Path(__file__).with_name('cell_config.py')}:{{folder}}",
                      "--workdir={folder}"])
POLL_S = 0.2
PATIENCE_S = 10.0   # Between SIGTERM and SIGKILL.


@dataclasses.dataclass(frozen=True)
class Cell:
  """One run. Its values have passed through JSON, so the checked values are those that run."""
  arm: str
  seed: int
  config: str
  changes: dict
  index: int = dataclasses.field(compare=False)  # Place in the grid.

  @property
  def name(self):
    """The name of the folder of the cell."""
    return f"{self.arm}-seed{self.seed}"


def read(folder):
  """Reads the cell in a folder; returns None without cell.json."""
  path = pathlib.Path(folder) / "cell.json"
  return Cell(**json.loads(path.read_text())) if path.exists() else None


def prepare(folder, cell):
  """Creates the folder of the cell."""
  folder.mkdir(parents=True, exist_ok=True)
  _write(folder / "cell.json", dataclasses.asdict(cell))


def state(folder):
  """Returns the state of the cell: done, failed, started or new."""
  if (folder / "done.json").exists(): return "done"
  tried = attempts(folder)
  if tried and tried[-1]["exit"]: return "failed"
  return "started" if (folder / "log.txt").exists() else "new"


def attempts(folder):
  """Returns the lines of attempts.jsonl."""
  path = folder / "attempts.jsonl"
  return [json.loads(l) for l in path.read_text().splitlines()] if path.exists() else []


def seconds(folder):
  """Returns the seconds of all attempts together."""
  return sum(a["seconds"] for a in attempts(folder))


def newest(folder):
  """Returns the last complete line of metrics.jsonl, or {}."""
  path = folder / "metrics.jsonl"
  if not path.exists(): return {}
  with path.open("rb") as f:
    f.seek(max(0, path.stat().st_size - 2**16))
    lines = [l for l in f.read().decode(errors="replace").splitlines()
             if l.startswith("{") and l.endswith("}")]
  return json.loads(lines[-1]) if lines else {}


def holder(folder):
  """Returns the process that runs the cell as "host, process, start"; "" if there is none."""
  path = folder / "lock"
  return path.read_text() if path.exists() else ""


def attempt(folder, command=COMMAND, env=None, stop=None):
  """Runs the command of the cell once; it resumes an earlier attempt.

  Args:
    folder: of the cell, prepared.
    command: {folder} in it is the folder; exit status 0 finishes the cell.
    env: added to the environment.
    stop: threading.Event; once set, the command and all that it started are ended.
  Returns:
    done | failed | stopped | busy: another process is running it.
  """
  folder, stop = pathlib.Path(folder).absolute(), stop or threading.Event()
  try:
    with lock.hold(folder / "lock") as held:
      if state(folder) == "done": return "done"
      if stop.is_set(): return "stopped"
      code = _run(folder, command, env, stop, held.fileno())
      if code in preemption.STATUSES and (folder / "stopped.json").exists(): code = None
      if code == 0: _write(folder / "done.json", dict(seconds=seconds(folder)))
  except lock.Held:
    return "busy"
  return "stopped" if code is None else "failed" if code else "done"


def _run(folder, command, env, stop, fd):
  """Returns the exit status of the command, None if stopped, and logs it in attempts.jsonl.

  Args:
    fd: of the lock, which the command holds too.
  """
  start = datetime.datetime.now().astimezone().isoformat(timespec="seconds")
  clock, code = time.perf_counter(), None
  words = [w.replace("{folder}", str(folder)) for w in shlex.split(command)]
  with (folder / "log.txt").open("a") as log:
    print(f"== {start} {shlex.join(words)}", file=log, flush=True)
    said_from = log.tell()
    # In a session of its own, so that Ctrl-C does not reach it directly. It also holds the lock:
    # if this process is killed, no other one starts the cell while the run continues.
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
        env=os.environ | (env or {}), start_new_session=True, pass_fds=[fd])
    try:
      while (code := process.poll()) is None and not stop.wait(POLL_S): pass
    finally:
      _end(process)
      # A run that a signal stopped leaves this.
      if code in preemption.STATUSES and (folder / "stopped.json").exists(): code = None
      line = dict(start=start, seconds=round(time.perf_counter() - clock, 1), exit=code,
                  said=_last_line(folder / "log.txt", said_from))
      with (folder / "attempts.jsonl").open("a") as f: f.write(json.dumps(line) + "\n")
  return code


def _end(process):
  """Terminates a process and its children."""
  with contextlib.suppress(ProcessLookupError):
    if process.poll() is None:
      process.terminate()
      with contextlib.suppress(subprocess.TimeoutExpired): process.wait(PATIENCE_S)
    os.killpg(process.pid, signal.SIGKILL)  # Workers that outlived it.
  process.wait()


def _last_line(path, start):
  """Returns the end of the output, from byte `start` on."""
  with path.open("rb") as f:
    f.seek(max(start, path.stat().st_size - 4096))
    lines = re.split(r"[\r\n]+", f.read().decode(errors="replace").strip())
  return lines[-1].strip()


def _write(path, value):
  """Writes a file atomically."""
  part = path.with_suffix(f".{os.getpid()}.part")
  part.write_text(json.dumps(value, indent=2))
  part.replace(path)


class Job:
  """An attempt that submitit runs. A preempted job is queued again."""

  def __init__(self, command):
    self.command = command

  def __call__(self, folder):
    return attempt(folder, self.command)

  def checkpoint(self, folder):
    from submitit import helpers  # pylint: disable=g-import-not-at-top
    return helpers.DelayedSubmission(self, folder)
