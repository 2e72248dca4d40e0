"""Where a run's seconds go, the live bar that shows it, and what to say when it hangs."""
import faulthandler
import sys
import threading
import time

import tqdm


class Clock:
  """Wall-clock seconds per stage, of the current step and in total.

  `lap(stage, arrays)` closes the stretch since the last lap; the arrays are
  waited for, so that a stage pays for its own device time.
  """

  def __init__(self, silence_s=0):
    """With `silence_s` > 0, so many seconds without a lap print every thread's stack."""
    self._start = self._last = time.perf_counter()
    self._step, self._sum = {}, {}
    self.to_first_step = None
    self._lapped, self._closed = "the start", threading.Event()
    if silence_s > 0:
      threading.Thread(target=self._watch, args=(silence_s,), daemon=True).start()

  def lap(self, stage, arrays=None):
    import jax  # pylint: disable=g-import-not-at-top
    if arrays is not None: jax.block_until_ready(arrays)
    now = time.perf_counter()
    self._step[stage] = self._step.get(stage, 0.0) + now - self._last
    self._last, self._lapped = now, stage

  def metrics(self, tokens):
    """Seconds of the stages of this step so far, and its tokens per second."""
    step = {k: v for k, v in self._step.items() if k not in ("build", "compile")}
    busy = sum(v for k, v in step.items() if k != "eval")
    return ({f"seconds/{k}": v for k, v in step.items()}
            | {"seconds/step": busy, "rollouts/tokens_per_s": tokens / busy})

  def end_step(self):
    """Closes a step: what is left of its time is logging."""
    self.lap("log")
    if self.to_first_step is None:
      self.to_first_step = time.perf_counter() - self._start
    self._flush()

  def total(self, before=None):
    """Seconds per stage since the start, on top of those of earlier sittings."""
    self._flush_into(out := dict(self._sum))
    out["total"] = time.perf_counter() - self._start
    out["to_first_step"] = self.to_first_step or out["total"]
    for k, v in (before or {}).items():
      out[k] = v if k == "to_first_step" else out.get(k, 0.0) + v
    return out

  def close(self):
    """Ends the watch."""
    self._closed.set()

  def _watch(self, silence_s):
    told = None
    while not self._closed.wait(silence_s / 10):
      silent_s = time.perf_counter() - self._last
      if silent_s < silence_s or told == self._last: continue
      told = self._last  # Once a silence.
      print(f"rlx: nothing for {silent_s:.0f} s, since {self._lapped!r} ended. What all "
            "threads do:", file=sys.stderr, flush=True)
      faulthandler.dump_traceback(file=sys.stderr, all_threads=True)

  def _flush(self):
    self._flush_into(self._sum)
    self._step = {}

  def _flush_into(self, total):
    for k, v in self._step.items():
      total[k] = total.get(k, 0.0) + v


class Bar:
  """A progress bar with the figures that matter; newest known values stay."""
  SHOWN = {"rollouts/accuracy": "reward", "eval/sampled": "held-out",
           "prm/accuracy": "prm", "rollouts/tokens_per_s": "tok/s"}

  def __init__(self, total, done, is_shown=True):
    self._bar = tqdm.tqdm(total=total, initial=done, unit="step", dynamic_ncols=True,
                          disable=not is_shown)
    self._shown = {}

  def show(self, metrics):
    for key, name in self.SHOWN.items():
      if key in metrics:
        v = metrics[key]
        self._shown[name] = f"{v:.0f}" if v >= 100 else f"{v:.2f}"
    self._bar.set_postfix(self._shown, refresh=False)
    self._bar.update()

  def close(self):
    self._bar.close()
