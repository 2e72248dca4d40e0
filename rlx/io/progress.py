"""Seconds per stage of a run, the progress bar, and stack traces of a run that hangs."""
import collections
import faulthandler
import sys
import threading
import time

import tqdm


class Clock:
  """Wall-clock seconds per stage, of the current step and in total.

  `lap(stage, arrays)` assigns the time since the last lap to a stage, after waiting for the
  arrays: a stage includes its own device time.
  """

  def __init__(self, silence_s=0):
    """With `silence_s` > 0, prints the stacks of all threads after so many seconds without lap."""
    self._start = self._last = time.perf_counter()
    self._step, self._sum = collections.Counter(), collections.Counter()
    self.to_first_step = None
    self._lapped, self._closed = "the start", threading.Event()
    if silence_s > 0:
      threading.Thread(target=self._watch, args=(silence_s,), daemon=True).start()

  def lap(self, stage, arrays=None):
    import jax  # pylint: disable=g-import-not-at-top
    if arrays is not None: jax.block_until_ready(arrays)
    now = time.perf_counter()
    self._step[stage] += now - self._last
    self._last, self._lapped = now, stage

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
    """Stops the thread that watches."""
    self._closed.set()

  def _watch(self, silence_s):
    reported = None
    while not self._closed.wait(silence_s / 10):
      silent_s = time.perf_counter() - self._last
      if silent_s < silence_s or reported == self._last: continue
      reported = self._last  # Once for each pause.
      print(f"rlx: no progress for {silent_s:.0f} s, since {self._lapped!r} ended. Stacks of all "
            "threads:", file=sys.stderr, flush=True)
      faulthandler.dump_traceback(file=sys.stderr, all_threads=True)


class Bar:
  """A progress bar with the newest known values of some metrics."""
  SHOWN = {"rollouts/accuracy": "reward", "eval/sampled": "held-out",
           "prm/accuracy": "prm", "sft/loss": "loss", "rollouts/tokens_per_s": "tok/s"}

  def __init__(self, total, done, is_shown=True):
    self._bar = tqdm.tqdm(total=total, initial=done, unit="step", dynamic_ncols=True,
                          disable=not is_shown)
    self._shown, self.close = {}, self._bar.close

  def show(self, metrics):
    for key, name in self.SHOWN.items():
      if key in metrics:
        v = metrics[key]
        self._shown[name] = f"{v:.0f}" if v >= 100 else f"{v:.2f}"
    self._bar.set_postfix(self._shown, refresh=False)
    self._bar.update()
