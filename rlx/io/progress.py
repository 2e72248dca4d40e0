"""Seconds per stage of a run, the progress bar, and stack traces of a run that hangs."""
import collections
import faulthandler
import sys
import time
from typing import Any

import tqdm


class Clock:
  """Wall-clock seconds per stage, of the current step and in total.

  `lap(stage, arrays)` assigns the time since the last lap to a stage, after waiting for the
  arrays: a stage includes its own device time.
  """

  def __init__(self, silence_s: float = 0):
    """With `silence_s` > 0, prints the stacks of all threads after so many seconds without lap."""
    self._start = self._last = time.perf_counter()
    # Any: the counts of a Counter are whole numbers for a type checker, and these are seconds.
    self._step: collections.Counter[Any] = collections.Counter()
    self._sum: collections.Counter[Any] = collections.Counter()
    self.to_first_step, self._silence_s = None, silence_s
    self._watch()

  def lap(self, stage, arrays=None):
    import jax  # pylint: disable=g-import-not-at-top
    if arrays is not None: jax.block_until_ready(arrays)
    now = time.perf_counter()
    self._step[stage] += now - self._last
    self._last = now
    self._watch()

  def metrics(self, tokens=None):
    """Seconds of the stages of this step so far; with `tokens` also its tokens per second."""
    step = {k: v for k, v in self._step.items() if k not in ("build", "compile")}
    busy = sum(v for k, v in step.items() if k != "eval")
    rate = {} if tokens is None else {"rollouts/tokens_per_s": tokens / busy}
    return {f"seconds/{k}": v for k, v in step.items()} | {"seconds/step": busy} | rate

  def end_step(self):
    """Ends a step; the time since its last lap is logging."""
    self.lap("log")
    if self.to_first_step is None: self.to_first_step = self._last - self._start
    self._sum.update(self._step)
    self._step.clear()

  def total(self, before=None):
    """Seconds per stage since the start, added to those of the run before it was resumed."""
    total, before = time.perf_counter() - self._start, dict(before or {})
    first = before.pop("to_first_step", self.to_first_step or total)
    out = collections.Counter(total=total)
    for seconds in (self._sum, self._step, before): out.update(seconds)
    return dict(out, to_first_step=first)

  def close(self):
    """Ends the watch for silence."""
    faulthandler.cancel_dump_traceback_later()

  def _watch(self):
    # Not sys.stderr, which has no file descriptor in a notebook.
    if self._silence_s: faulthandler.dump_traceback_later(self._silence_s, file=sys.__stderr__)


class Compilations:
  """The programs that jax compiles, as lines: which, and how many seconds each took."""
  _SHOWN_S = 1.0  # What compiles faster is only counted.
  # Functions of the package that take long, by the names of `build.Run.list_programs`.
  _NAMES = dict.fromkeys(("_start", "_advance", "_read", "_move", "_rollouts"), "sampler") | {
      "step": "updates", "logps_of": "scoring", "_compute": "rewards and advantages"}

  def __init__(self):
    import jax  # pylint: disable=g-import-not-at-top
    self._seconds: collections.Counter[str] = collections.Counter()
    jax.monitoring.register_event_duration_secs_listener(self._add)

  def _add(self, event, seconds, fun_name="", **_):
    if event == "/jax/core/compile/backend_compile_duration":
      name = fun_name.removeprefix("jit(").removesuffix(")")
      self._seconds[self._NAMES.get(name, name)] += seconds

  def take(self):
    """What was compiled since the last call, as a text; "" if nothing took a second."""
    seconds, self._seconds = self._seconds, collections.Counter()
    slow = [f"{name} {s:.0f} s" for name, s in seconds.most_common() if s >= self._SHOWN_S]
    rest = len(seconds) - len(slow)
    return ", ".join(slow) + f" and {rest} small ones" * bool(rest) if slow else ""

  def close(self):
    """Ends the listening."""
    import jax  # pylint: disable=g-import-not-at-top
    jax.monitoring.unregister_event_duration_listener(self._add)


class Bar:
  """A progress bar with the newest known values of some metrics.

  The first step compiles: its time is no part of the time that is left.
  """
  SHOWN = {"rollouts/accuracy": "reward", "eval/sampled": "held-out",
           "prm/accuracy": "prm", "sft/loss": "loss", "rollouts/tokens_per_s": "tok/s"}

  def __init__(self, total, done, is_shown=True):
    self._bar = tqdm.tqdm(total=total, initial=done, unit="step", dynamic_ncols=True,
                          disable=not is_shown, smoothing=0)
    self._bar.set_postfix_str("compiling")
    self._is_shown, self._shown, self.close = is_shown, {}, self._bar.close
    self._first = done

  def show(self, metrics):
    for key, name in self.SHOWN.items():
      if key in metrics:
        v = metrics[key]
        self._shown[name] = f"{v:.0f}" if v >= 100 else f"{v:.2f}"
    self._bar.set_postfix(self._shown, refresh=False)
    self._bar.update()
    if self._bar.n == self._first + 1 and self._is_shown:
      self._bar.initial = self._bar.n
      self._bar.start_t = self._bar.last_print_t = time.time()

  def note(self, step, compiled):
    """Prints a line about what a step compiled; "": nothing."""
    if compiled and self._is_shown:
      self._bar.write(f"rlx: step {step} compiled {compiled}.", file=sys.stderr)
