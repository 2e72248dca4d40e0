"""What all training loops share: resume, clock, progress bar, metrics, checkpoints, summary.

  with session.Session(options, workdir) as s:
    if summary := s.find_summary(config): return summary
    s.record(config, shapes)                    # config.json, versions.json, the checkpoints
    s.restore(init)                             # the newest checkpoint, or init()
    s.announce(["update"])                      # says what is compiled
    for step in s.steps():                      # saves the state after a step when it is due
      s.state, metrics = update(s.state, step)
      s.clock.lap("policy", s.state.policy)
      s.write(metrics)
    return s.finish() if s.is_done else None    # None: `steps` has said how to resume

A run that is killed at any point and started again gives the same result as an uninterrupted one.
"""
import contextlib
import dataclasses
import os
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rlx.build import keys, options as options_lib
from rlx.core import records
from rlx.core.options import flatten, key
from rlx.io import (
    checkpoint, curves, hub, lock, metrics as io_metrics, preemption, progress, run_folder,
    strict_json, trackers)
from rlx.learner import hosts
from rlx.loops import record
from rlx.prompts import iterator
from rlx.stages import host_state


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """The config values that every training loop needs."""
  seed: int = key("seed")
  steps: int = key("steps")
  checkpoint_every: int = key("checkpoint.every")
  max_to_keep: int = key("checkpoint.max_to_keep")
  writers: tuple = key("log.writers")
  silence_s: float = key("log.silence_s")
  baseline: str | None = key("log.baseline")


class Session(contextlib.ExitStack):
  """A run of a training loop in a workdir. `state` and `host` are what checkpoints save."""

  def __init__(self, options: Options, workdir: str | os.PathLike):
    super().__init__()
    self.options, self.workdir = options, pathlib.Path(workdir)
    self.clock = self.enter_context(contextlib.closing(progress.Clock(options.silence_s)))
    self._compilations = self.enter_context(contextlib.closing(progress.Compilations()))
    self._notice = self.enter_context(contextlib.closing(preemption.Notice()))
    self._hold_lock()
    self.state: records.TrainState  # Set by `restore`.
    self.host, self._is_stopped = host_state.HostState(), False

  def record(self, config: keys.Config, shapes: records.TrainState, **versions: Any) -> None:
    """Writes config.json and versions.json and opens the checkpoints.

    Args:
      shapes: a tree with the shapes of the state, for a check that the disk has room for it.
      versions: further entries of versions.json.
    Raises:
      ValueError: log.baseline is no run; otherwise as `record.record` and `Checkpoints`.
    """
    self._config = record.record(config, self.workdir, steps=self.options.steps, **versions)
    self._baseline = _baseline(self.options.baseline, self._config)
    self._checkpoints = checkpoint.Checkpoints(self.workdir, max_to_keep=self.options.max_to_keep)
    self._checkpoints.check_room(_select_saved(shapes))
    self.clock.lap("build")

  def restore(self, init: Callable[[], records.TrainState],
              prompts: iterator.PromptIterator | None = None) -> None:
    """Sets the state to that of the newest checkpoint, see `restore`, and opens the metrics."""
    self._prompts = prompts
    self.state, self.host = restore(self._checkpoints, init, prompts)
    if self.state.step and hosts.is_first():
      print(f"rlx: continuing from step {self.state.step} in {self.workdir}.", file=sys.stderr)
    self._writer = io_metrics.Writer(
        self.workdir, first_step=self.state.step, writes=hosts.is_first(), fetch=hosts.fetch,
        trackers=self.options.writers, config=self._config)
    self.clock.lap("build")

  def announce(self, programs: Sequence[str]) -> None:
    """Says which programs the first of the remaining steps waits for."""
    self._compilations.take()  # What was compiled before has been waited for.
    if hosts.is_first() and not self.is_done:
      print(f"rlx: compiling: {', '.join(programs)}; step {self.state.step} waits for them.",
            file=sys.stderr, flush=True)

  def steps(self) -> Iterator[int]:
    """Yields the number of each remaining step and saves the state after it when that is due.

    Ends early, with the state saved, after `stop` or a signal; then it says how to resume the run.
    """
    total = self.options.steps
    bar = progress.Bar(total, self.state.step, is_shown=hosts.is_first())
    for step in range(self.state.step, total):
      self._step = step
      yield step
      preemption.Notice.stopped_by = max(hosts.gather(self._notice.number))
      is_last = step + 1 == total or self._is_stopped or preemption.Notice.stopped_by > 0
      if is_due(step + 1, self.options.checkpoint_every) or is_last: self._save()
      bar.note(step, self._compilations.take())
      bar.show(self._writer.last)
      self.clock.end_step()
      if is_last: break
    for part in (bar, self._writer, self._checkpoints): part.close()
    if not self.is_done and not self._is_stopped: record.leave(self.state.step, total, self.workdir)

  def write(self, metrics: dict, table: list[dict] | None = None) -> None:
    """Writes the metrics of this step with its seconds; `table` has sampled completions."""
    if table is not None: self._writer.table(self._step, table)
    self._writer.write(self._step, metrics | self.clock.metrics(metrics.get("rollouts/tokens")))

  def stop(self) -> None:
    """Ends the run after this step."""
    self._is_stopped = True

  def find_summary(self, config: keys.Config) -> dict[str, Any] | None:
    """The summary of a run in the workdir that has done all steps; None if there is none.

    Raises:
      ValueError: as `record.record`.
    """
    path = self.workdir / "summary.json"
    if (run_folder.read_step(self.workdir) or 0) < self.options.steps or not path.exists():
      return None
    record.compare(config, self.workdir, self.options.steps)
    if hosts.is_first():
      print(f"rlx: all {self.options.steps} steps of {self.workdir} are done.", file=sys.stderr)
    return strict_json.read(path)

  @property
  def is_done(self) -> bool:
    """Whether all steps are done."""
    return self.state.step >= self.options.steps

  def recent_mean(self, name: str, steps: int = 10) -> float | None:
    """The mean of a metric over the last steps that have it; None if none has it."""
    values = [line[name] for line in io_metrics.read(self.workdir) if name in line]
    return float(np.nanmean(values[-steps:])) if values else None

  def finish(self, **figures: Any) -> dict[str, Any]:
    """Writes summary.json, with these figures, and curves.png.

    Returns:
      the summary.
    """
    summary = dict(figures, steps=int(self.state.step), seed=self.options.seed,
                   seconds=self.clock.total(self.host.seconds_before))
    if hosts.is_first():
      strict_json.write(self.workdir / "summary.json", summary)
      curves.draw(self.workdir, self._baseline)
    return summary

  def _hold_lock(self) -> None:
    """Refuses a workdir in which another run trains."""
    error = ""
    if hosts.is_first():
      self.workdir.mkdir(parents=True, exist_ok=True)
      try:
        self.enter_context(lock.hold(self.workdir / "run.lock"))
      except lock.Held as e:
        error = str(e)
    if error := hosts.gather(error)[0]:
      raise ValueError(f"workdir={str(self.workdir)!r}: a run is writing there ({error}); end it, "
                       "or name another folder.")

  def _save(self) -> None:
    self._writer.flush()  # A resumed run does not write the lines before its checkpoint again.
    self.host.seconds = self.clock.total(self.host.seconds_before)
    self.host.prompts = None if self._prompts is None else self._prompts.state()
    self._checkpoints.save(self.state.step, _select_saved(self.state),
                           dataclasses.asdict(self.host))


def _baseline(path: str | None, config: dict[str, Any]) -> pathlib.Path | None:
  """The folder of log.baseline, or None if there is none or its run had other prompts.

  A config that is derived from another one may keep its baseline, which is then of another task.
  """
  if path is None: return None
  folder = hub.folder(path)
  for name in ("config.json", "metrics.jsonl"):
    if not (folder / name).exists():
      raise ValueError(f"log.baseline={path!r}: the folder of a run; it has no {name}.")
  before = flatten(run_folder.read_config(folder)["prompts"])
  return folder if before == flatten(config["prompts"]) else None


def restore(checkpoints: checkpoint.Checkpoints, init: Callable[[], records.TrainState],
            prompts: iterator.PromptIterator | None = None
            ) -> tuple[records.TrainState, host_state.HostState]:
  """Restores (state, HostState) of the newest checkpoint; init() if there is no checkpoint.

  Args:
    checkpoints: checkpoint.Checkpoints.
    init: () -> the initial state, whose constant references are not in checkpoints.
    prompts: iterator over training prompts, whose state is restored too.
  """
  state, host = init(), host_state.HostState()
  if checkpoints.latest is not None:
    restored, saved = checkpoints.restore(_select_saved(state), _RENAMED)
    # A checkpoint of an earlier version may lack entries, or have another name for one.
    saved.setdefault("initial_eval", saved.get("before"))
    names = {f.name for f in dataclasses.fields(host_state.HostState)}
    host = host_state.HostState(**{k: x for k, x in saved.items() if k in names})
    state = restored.replace(**{name: getattr(state, name) for name in _CONSTANT})
    if prompts is not None and host.prompts is not None: prompts.restore(host.prompts)
  host.seconds_before = host.seconds
  return state, host


def is_due(step: int, every: int) -> bool:
  """Whether something that happens at multiples of `every` steps happens now; 0 is never."""
  return bool(every) and step % every == 0


# Arrays of checkpoints of earlier versions.
_RENAMED = {"reward_std": "method_state.learner.reward_std_filter.ema"}
_CONSTANT = ("reference", "prm_reference", "frozen_models", "frozen")


def _select_saved(state: records.TrainState) -> records.TrainState:
  """The part of a TrainState that checkpoints have: all but references that do not change."""
  return state.replace(**dict.fromkeys(_CONSTANT))


def read_session_options(config: keys.Config, cls: type[Options] = Options) -> Options:
  """Checks `config` and returns the options of a training loop, of this class."""
  keys.check(config)
  options = options_lib.read_options(cls, config)
  trackers.check(options.writers)
  return options
