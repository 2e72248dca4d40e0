"""Runs a grid (grid.py), several cells at a time, and resumes an interrupted grid.

  rlx grid experiments/prime/ablations.py --dry-run     # cells and cost
  rlx grid experiments/prime/ablations.py --workers 4
  rlx grid experiments/prime/ablations.py --devices 0 1 2,3
  rlx grid experiments/prime/ablations.py --slurm timeout_min=600

Finished cells are skipped. A cell that fails is tried once more and then reported. Ctrl-C stops
the running cells, and the same command resumes them. Exit status: 0 if all cells are finished, 1 if
some are not, 2 if the grid was refused, 130 if it was stopped. See docs/grids.md.
"""
import argparse
import ast
import concurrent.futures
import datetime
import json
import math
import os
import pathlib
import queue
import signal
import statistics
import sys
import threading
import time

import jax

from rlx.grids import cell as cell_lib, grid
from rlx.build import run as run_lib
from rlx.core import options as options_lib
from rlx.io import progress as progress_lib

TRIES = 2
POLL_S = 0.5
# Number of chips of a TPU host that a process uses -> their arrangement.
TPU_BOUNDS = {1: "1,1,1", 2: "1,2,1", 4: "2,2,1", 8: "2,4,1"}


def main(*words):
  args = _arguments(words)
  jax.config.update("jax_platforms", "cpu")  # Devices are for the cells.
  try:
    cells = grid.load(args.file, args.config)[args.shard[0]::args.shard[1]]
    out = args.out or pathlib.Path("runs") / default_folder(args.file)
    folders = {cell.name: out.absolute() / cell.name for cell in cells}
    for cell in cells: refuse_another(folders[cell.name], cell)
  except ValueError as e:
    print(f"grid: {' '.join(str(e).split())}", file=sys.stderr)
    sys.exit(2)
  from rich import console  # pylint: disable=g-import-not-at-top
  screen = console.Console(width=None if sys.stdout.isatty() else 160,
                           markup=False, emoji=False, highlight=False)
  for line in find_changed(cells, folders): screen.print(line)
  if args.dry_run:
    screen.print(*plan(cells, folders), sep="\n")
    return
  for cell in cells: cell_lib.prepare(folders[cell.name], cell)
  signals = [signal.SIGINT, signal.SIGTERM]
  # Cells on this machine end with the terminal, except under nohup; jobs of a cluster do not.
  if not args.slurm and signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
    signals.append(signal.SIGHUP)
  for s in signals: signal.signal(s, signal.default_int_handler)
  try:
    executor = (Slurm(args.slurm, args.command, out.absolute() / "slurm")
                if args.slurm else
                Local(slots(args.workers, args.devices), args.command))
  except (AssertionError, NameError, RuntimeError, ValueError) as e:  # Of submitit.
    print(f"grid: --slurm: {' '.join(str(e).split())}", file=sys.stderr)
    sys.exit(2)
  try:
    ends = run(cells, folders, executor, screen)
  except KeyboardInterrupt:
    screen.print("Stopped. The same command continues the grid; cells that were started resume "
                 "from their newest checkpoint.")
    sys.exit(130)
  sys.exit(report(ends, folders, screen))


def _arguments(words):
  args = argparse.ArgumentParser("rlx grid", description=__doc__.splitlines()[0])
  args.add_argument("file", help="a Python file with a function grid(); FILE:NAME "
                    "takes the function NAME")
  args.add_argument("--config", help="config file for all cells in place of their own, for "
                    "example of another model or task")
  args.add_argument("--out", type=pathlib.Path, help="folder in which every cell "
                    "has its folder (default: runs/<name of the file>, or runs/<name>-NAME)")
  args.add_argument("--dry-run", action="store_true")
  where = args.add_mutually_exclusive_group()
  where.add_argument("--workers", type=int, default=1, help="number of cells that run at "
                     "the same time; each uses an equal part of the cores")
  where.add_argument("--devices", nargs="+", metavar="D", help="devices, each with one cell "
                     "at a time; `2,3` is both devices for one cell, `0 0` two cells on one device")
  where.add_argument("--slurm", nargs="+", type=_option, metavar="KEY=VALUE",
                     help="run every cell as a job of SLURM: parameters of "
                     "submitit.AutoExecutor; cluster=local runs the jobs on this machine")
  args.add_argument("--shard", type=_shard, default=(0, 1), metavar="I/N",
                    help="run only every Nth cell from cell I on, as host I of N hosts")
  args.add_argument("--command", default=cell_lib.COMMAND, help="command that runs a cell, with "
                    "{folder} for its folder (default: rlx.train)")
  args = args.parse_args(words or None)
  if args.workers < 1: raise SystemExit(f"--workers={args.workers}: must be >= 1.")
  args.slurm = args.slurm and dict(args.slurm)
  return args


def default_folder(file):
  """Returns the name of a grid: ablations-rates for experiments/prime/ablations.py:rates."""
  path, _, name = file.partition(":")
  return pathlib.Path(path).stem + (f"-{name}" if name else "")


def _option(text):
  key, _, value = text.partition("=")
  try:
    return key, ast.literal_eval(value)
  except (SyntaxError, ValueError):
    return key, value


def _shard(text):
  i, _, n = text.partition("/")
  if not (i.isdigit() and n.isdigit() and int(i) < int(n)):
    raise argparse.ArgumentTypeError(f"{text!r}: I/N with 0 <= I < N")
  return int(i), int(n)


def slots(workers, devices=None):
  """Returns (cores, environment variables) for each cell that runs at the same time.

  Each slot gets a block of cores, because XLA starts a thread for each core that it
  may use. A device that several cells share gives each its part of 90% of the memory.
  """
  devices = devices or [None] * workers
  cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
  n, blocks = len(devices), []
  for i, device in enumerate(devices):
    block = cores[i * len(cores) // n:(i + 1) * len(cores) // n]
    if cores and not block: block = [cores[i % len(cores)]]
    env = {} if device is None else _see(device, port=8476 + i)
    if (share := devices.count(device)) > 1 and device is not None:
      env["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{0.9 / share:.3f}"
    blocks.append((block, env))
  return blocks


def _see(device, port):
  """Returns the environment variables with which a program uses only these devices."""
  env = dict(CUDA_VISIBLE_DEVICES=device, TPU_VISIBLE_DEVICES=device,
             TPU_VISIBLE_CHIPS=device, TPU_PROCESS_BOUNDS="1,1,1",
             TPU_PROCESS_ADDRESSES=f"localhost:{port}", TPU_PROCESS_PORT=str(port),
             CLOUD_TPU_TASK_ID="0", ALLOW_MULTIPLE_LIBTPU_LOAD="1")
  if (chips := device.count(",") + 1) in TPU_BOUNDS:
    env["TPU_CHIPS_PER_PROCESS_BOUNDS"] = TPU_BOUNDS[chips]
  return env


class Local:
  """Runs cells on this machine, one in each slot."""

  def __init__(self, slots_, command):
    self.width = len(slots_)
    self._command, self._stop = command, threading.Event()
    self._free = queue.SimpleQueue()
    for slot in slots_: self._free.put(slot)
    self._pool = concurrent.futures.ThreadPoolExecutor(len(slots_))

  def start(self, folders):
    """Starts an attempt for each folder and returns their futures."""
    return [self._pool.submit(self._attempt, f) for f in folders]

  def _attempt(self, folder):
    cores, env = slot = self._free.get()
    try:
      # This thread's; what it starts inherits it.
      if cores: os.sched_setaffinity(0, cores)
      return cell_lib.attempt(folder, self._command, env, self._stop)
    finally:
      self._free.put(slot)

  def is_running(self, job, folder):
    del folder
    return job.running()

  def close(self):
    """Ends what runs; nothing if all is done."""
    self._stop.set()
    self._pool.shutdown(cancel_futures=True)


class Slurm:
  """Runs each cell as a job of a cluster."""

  def __init__(self, options, command, folder):
    import submitit  # pylint: disable=g-import-not-at-top
    self._executor = submitit.AutoExecutor(folder, options.get("cluster", "slurm"))
    self._executor.update_parameters(**{k: v for k, v in options.items() if k != "cluster"})
    self.width = math.inf
    self._command, self._jobs = command, []

  def start(self, folders):
    """Submits a job for each folder and returns the jobs."""
    if not folders: return []
    jobs = self._executor.map_array(cell_lib.Job(self._command), map(str, folders))
    self._jobs += jobs
    return jobs

  def is_running(self, job, folder):
    del job  # Reading its state would query SLURM each time.
    return bool(cell_lib.holder(folder))

  def close(self):
    """Cancels what is queued or runs."""
    for job in self._jobs:
      if not job.done(): job.cancel()


def run(cells, folders, executor, screen):
  """Runs the cells that are not finished.

  Returns:
    {name: done | failed | busy, or what went wrong with the job}
  """
  from rich import live  # pylint: disable=g-import-not-at-top
  ends = {c.name: "done" for c in cells if cell_lib.state(folders[c.name]) == "done"}
  waiting = [c for c in cells if c.name not in ends]
  begin, skipped, tries = time.perf_counter(), len(ends), {c.name: 1 for c in waiting}
  try:
    with live.Live(console=screen, refresh_per_second=2, transient=True) as shown:
      jobs = dict(zip(executor.start([folders[c.name] for c in waiting]), waiting))
      while jobs:
        for job, cell in [(j, c) for j, c in jobs.items() if j.done()]:
          del jobs[job]
          end, folder = _end(job), folders[cell.name]
          if end not in ("done", "busy") and tries[cell.name] < TRIES:
            tries[cell.name] += 1
            jobs[executor.start([folder])[0]] = cell
            screen.print(f"again  {cell.name}: {_why(end, folder)}")
          else:
            ends[cell.name] = end
            screen.print(f"{end:6} {cell.name}  {_span(cell_lib.seconds(folder))}")
        running = [c for j, c in jobs.items() if executor.is_running(j, folders[c.name])]
        shown.update(progress(cells, folders, ends, running, skipped,
                              time.perf_counter() - begin, executor.width))
        time.sleep(POLL_S)
  finally:
    executor.close()
  return ends


def _end(job):
  """Returns how a job ended, with the error if it failed outside of its command."""
  try:
    return job.result()
  except Exception as e:  # pylint: disable=broad-exception-caught
    return f"{type(e).__name__}: {' '.join(str(e).split())[:200]}"


def _why(end, folder):
  """Returns one line that describes the failure."""
  tried = cell_lib.attempts(folder)
  if end != "failed" or not tried: return end
  code = tried[-1]["exit"]
  how = f"signal {-code}" if code < 0 else f"exit status {code}"
  return f"{how}: {tried[-1]['said']}"


def report(ends, folders, screen):
  """Prints the cells that are not finished and returns the exit status."""
  for name, end in ends.items():
    folder = folders[name]
    if end == "busy":
      screen.print(f"{name} is run by {cell_lib.holder(folder).strip()}.")
    elif end != "done":
      screen.print(f"{name}: {_why(end, folder)}\n  {folder / 'log.txt'}")
  done = sum(end == "done" for end in ends.values())
  screen.print(f"{done} of {len(ends)} cells are finished.")
  return int(done < len(ends))


def progress(cells, folders, ends, running, skipped, elapsed, width):
  """Returns the live table: the running cells, and the number of cells in each other state."""
  from rich import console, table  # pylint: disable=g-import-not-at-top
  shown = table.Table("cell", "step", *progress_lib.Bar.SHOWN.values(), box=None,
                      padding=(0, 2, 0, 0))
  for cell in running:
    last, steps = cell_lib.newest(folders[cell.name]), make_config(cell).steps
    shown.add_row(
        cell.name, f"{int(last['step']) + 1}/{steps}" if last else "starting",
        *("" if last.get(key) is None else f"{last[key]:.3g}"
          for key in progress_lib.Bar.SHOWN))
  counts = dict(done=sum(e == "done" for e in ends.values()), running=len(running))
  counts["failed"] = len(ends) - counts["done"]
  counts["waiting"] = len(cells) - len(ends) - len(running)
  left = [s for name, s in estimates(cells, folders).items() if name not in ends]
  text = ", ".join(f"{n} {what}" for what, n in counts.items())
  if skipped: text += f", {skipped} of them in earlier calls"
  text += f"; {_span(elapsed)} elapsed"
  if width < math.inf: text += f", {_span(sum(left) / width)} left"
  return console.Group(shown, text)


_CONFIGS: dict = {}


def make_config(cell):
  """Returns the config of a cell, which is read once for all seeds."""
  key = json.dumps([cell.config, cell.changes])
  if key not in _CONFIGS: _CONFIGS[key] = grid.make_config(cell)
  return _CONFIGS[key]


def cost(cell):
  """Returns (steps, completions, maximum tokens) of training, sampling once per step."""
  c = make_config(cell)
  completions = c.steps * run_lib.sizes_of(c).draw * c.rollouts.per_prompt
  return c.steps, completions, completions * c.rollouts.max_tokens


def estimates(cells, folders):
  """Returns {name of a cell: seconds}, measured or estimated.

  The estimate for a cell that is not finished is the mean over the finished cells of its arm, or
  the mean time per token of all finished cells; NaN if no cell is finished.
  """
  took = {c.name: cell_lib.seconds(folders[c.name]) for c in cells
          if cell_lib.state(folders[c.name]) == "done"}
  tokens = {c.name: cost(c)[2] for c in cells}
  rate = math.nan
  if took: rate = sum(took.values()) / max(sum(tokens[name] for name in took), 1)
  of_arm = {arm: [took[c.name] for c in cells if c.arm == arm and c.name in took]
            for arm in {c.arm for c in cells}}
  return {c.name: took[c.name] if c.name in took else
          statistics.fmean(of_arm[c.arm]) if of_arm[c.arm] else rate * tokens[c.name]
          for c in cells}


def plan(cells, folders):
  """Returns the text of a dry run: the cells with their state, cost and changes."""
  from rich import table  # pylint: disable=g-import-not-at-top
  shown = table.Table("cell", "state", "steps", "completions", "tokens at most", "time",
                      "config", "changes", box=None, padding=(0, 2, 0, 0))
  for column in shown.columns[2:6]: column.justify = "right"
  expected, before = estimates(cells, folders), None
  for cell in cells:
    state = cell_lib.state(folders[cell.name])
    changes = "\n".join(f"{k}={v!r}" for k, v in cell.changes.items())
    span = _span(expected[cell.name])
    is_new, before = (cell.arm, cell.changes) != before, (cell.arm, cell.changes)
    shown.add_row(cell.name, state, *[f"{n:,}" for n in cost(cell)], span,
                  *[cell.config, changes] * is_new)
  left = [c for c in cells if cell_lib.state(folders[c.name]) != "done"]
  totals = [sum(n) for n in zip(*map(cost, left))] or [0, 0, 0]
  span = _span(sum(expected[c.name] for c in left))
  return shown, (
      f"{len(cells)} cells, {len(left)} to run: {totals[0]:,} steps, {totals[1]:,} "
      f"completions if each step samples once, {totals[2]:,} tokens at most, without "
      f"evaluation; {span} in sequence"
      + ("." if span != "?" else ": no cell is finished yet."))


def refuse_another(folder, cell):
  """Refuses a folder that holds another cell.

  Raises:
    ValueError: one line with the first key that differs, its value there and its value now.
  """
  there = cell_lib.read(folder)
  if there is None or there == cell: return
  old, new = (options_lib.flatten(dict(config=c.config, **c.changes)) for c in (there, cell))
  key = next(k for k in [*new, *old] if (k in old, old.get(k)) != (k in new, new.get(k)))
  say = lambda c: repr(c[key]) if key in c else "as in the config"
  raise ValueError(f"{folder}: {key} was {say(old)} there, now {say(new)}; take "
                   "another arm or --out.")


def find_changed(cells, folders):
  """Yields a line for each finished cell whose config has changed since it ran."""
  for cell in cells:
    path = folders[cell.name] / "config.json"
    if cell_lib.state(folders[cell.name]) != "done" or not path.exists(): continue
    now = make_config(cell).copy_and_resolve_references().to_dict()
    now["seed"] = cell.seed
    old, new = (options_lib.flatten(json.loads(text)) for text in (
        path.read_text(), json.dumps(now, default=list)))
    differ = sorted(k for k in old.keys() | new.keys() if old.get(k) != new.get(k))
    if not differ: continue
    yield (f"{cell.name} is finished, with {differ[0]}={old.get(differ[0])!r}, now "
           f"{new.get(differ[0])!r}; {len(differ)} keys differ.")


def _span(seconds):
  """Returns hours, minutes and seconds as text; ? if unknown."""
  return "?" if math.isnan(seconds) else str(datetime.timedelta(seconds=round(seconds)))


if __name__ == "__main__":
  main()
