"""Runs verifiers in processes with a hard deadline per completion.

A completion is untrusted text: it can send a parser into an infinite loop or
kill the process that reads it. Whatever happens, its verdict is NaN, never 0,
and the verdicts of the other completions are not touched.
"""
import collections
import math
import multiprocessing.connection
import os
import signal
import subprocess
import sys
import time
import types

import numpy as np

from rlx.verifiers import _worker

_COMMAND = (sys.executable, "-c",
            "from rlx.verifiers import _worker; _worker.main()")
_START_S = 120.0  # For a worker to start and to import what a verifier needs.
_WINDOW = 1024    # Verdicts that `check` looks back on.
_LIFE = 2000      # Completions a worker checks before a new one takes its place.


class Pool:
  """Long-lived worker processes, each checking one completion at a time.

  With `workers=0` verifiers run in this process: fastest, for verifiers that
  cannot hang, since there is no deadline and a crash ends the run.

  Attributes:
    errors: Counter of verdicts lost since the start, by kind: "timeout",
      "crash" (the worker died), "exception", "unknown" (the verifier said NaN or raised
      errors.Unknown).
    last_error: the newest exception as text, for messages.
    recycled: workers that gave way to new ones: late, dead, out of memory or old.
  """

  def __init__(self, workers, timeout_s, memory_gb=4.0, options=None,
               gather=lambda value: [value]):
    """`timeout_s` is per completion, `memory_gb` per worker (Linux only).

    `options`, {verifier module: its options}, is added to the `meta` of prompts.
    `gather` gives the values of all processes that share the completions.
    """
    if workers < 0:
      raise ValueError(f"verifier.workers={workers}: must be >= 0.")
    if timeout_s <= 0:
      raise ValueError(f"verifier.timeout_s={timeout_s}: must be > 0.")
    self._count, self._timeout_s, self._memory_gb = workers, timeout_s, memory_gb
    self._options, self._gather = options or {}, gather
    self._workers, self._checked = [], set()
    self._recent = collections.deque(maxlen=_WINDOW)
    self.errors = collections.Counter()
    self.last_error = ""
    self.recycled = 0

  def verify(self, prompts, texts):
    """Verdicts of `texts`, each by the verifier that its prompt names.

    Args:
      prompts: list of Prompt, one for each text.
      texts: list of completions.
    Returns:
      float64 [n]; NaN = could not tell.
    Raises:
      ValueError: a prompt names a verifier that does not exist or that needs a
        package which is not installed.
    """
    return np.array(self._judge(prompts, texts, float), np.float64)

  def verify_steps(self, prompts, texts):
    """As `verify`, by verifiers that judge each step of a completion.

    Returns:
      a list of verdicts per text, NaN = could not tell; [] where the check failed.
    """
    return [v if isinstance(v, list) else [] for v in self._judge(prompts, texts, list)]

  def _judge(self, prompts, texts, kind):
    """What the verifiers return, NaN where that was lost; counts what was lost."""
    if len(prompts) != len(texts):
      raise ValueError(f"{len(prompts)} prompts for {len(texts)} completions.")
    if self._count == 0:
      results = self._in_process(prompts, texts)
    else:
      try:
        results = self._in_workers(prompts, texts)
      except BaseException:
        self.close()  # Workers may be busy with completions of this call.
        raise
    for i, (verdict, error, message) in results.items():
      if error is None and not isinstance(verdict, kind):
        raise ValueError(f"verifier {prompts[i].verifier!r} gives a "
                         f"{type(verdict).__name__}, not a {kind.__name__}: those of "
                         "verifier.steps give a list, all others a number.")
      self._recent.append(error is not None)
      if error is not None: self.errors[error] += 1
      if message is not None: self.last_error = message
    return [results[i][0] for i in range(len(texts))]

  def check(self, max_rate):
    """Raises if more than `max_rate` of the last 1024 verdicts of each process were lost.

    All processes call it and raise the same: one alone would leave the others waiting.
    """
    lost_I, n_I, errors_I, last_I = zip(*self._gather(
        [sum(self._recent), len(self._recent), self.errors, self.last_error]))
    lost, n = sum(lost_I), sum(n_I)
    if lost > max_rate * n:
      errors = sum(map(collections.Counter, errors_I), collections.Counter())
      kinds = ", ".join(f"{k} {c}" for k, c in sorted(errors.items()))
      last = next((f"; last exception: {text}" for text in last_I if text), "")
      raise RuntimeError(
          f"verifier.max_error_rate={max_rate}: {lost} of the last {n} verdicts "
          f"are unknown (since the start: {kinds}{last}).")

  def close(self):
    """Ends the workers; the next `verify` starts new ones."""
    for worker in self._workers: worker.kill()
    self._workers = []

  def _in_process(self, prompts, texts):
    for prompt in prompts:
      if prompt.verifier not in self._checked:
        if problem := _worker.load(self._plain(prompt)): raise ValueError(problem)
        self._checked.add(prompt.verifier)
    return {i: _worker.run(self._plain(prompt), text)
            for i, (prompt, text) in enumerate(zip(prompts, texts))}

  def _in_workers(self, prompts, texts):
    todo, results = collections.deque(range(len(texts))), {}
    while len(self._workers) < min(self._count, len(texts)):
      self._workers.append(self._new_worker())
    while len(results) < len(texts):
      for slot, worker in enumerate(self._workers):
        if worker.item is None and todo:
          if worker.process.poll() is not None:  # Died idle: nobody's fault.
            worker = self._replace(slot)
          i = todo.popleft()
          worker.start(i, self._plain(prompts[i]), texts[i])
      busy = [w for w in self._workers if w.item is not None]
      wait_s = max(min(w.deadline for w in busy) - time.monotonic(), 0)
      ready = multiprocessing.connection.wait([w.connection for w in busy], wait_s)
      for slot, worker in enumerate(self._workers):
        if worker.item is None: continue
        if worker.connection in ready:
          result = worker.receive()
        elif time.monotonic() >= worker.deadline:
          result = worker.late()
        else:
          continue
        if result is not None:
          results[worker.item] = result
          worker.item = None
          if worker.is_spent(result): self._replace(slot)
    return results

  def _replace(self, slot):
    self.recycled += 1
    self._workers[slot].kill()
    self._workers[slot] = self._new_worker()
    return self._workers[slot]

  def _new_worker(self):
    return _Worker(self._timeout_s, self._memory_gb)

  def _plain(self, prompt):
    """A Prompt without its class, whose module imports jax."""
    return types.SimpleNamespace(
        id=prompt.id, text=prompt.text, answer=prompt.answer,
        verifier=prompt.verifier, meta={**prompt.meta, **self._options})


class _Worker:
  """One process and what it is doing."""

  def __init__(self, timeout_s, memory_gb):
    self.item = None             # Index of the completion it is checking.
    self.deadline = math.inf     # On time.monotonic.
    self._is_loading = False     # It imports the verifier of its completion.
    self._timeout_s, self._loaded, self._job = timeout_s, set(), None
    self._left = _LIFE           # Completions that it may still check.
    self.connection, theirs = multiprocessing.connection.Pipe()
    # Not multiprocessing.Process: its children import the main module again,
    # and with it jax. A session of its own, so that a kill takes along
    # whatever the verifier has started, and Ctrl-C does not reach it.
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    self.process = subprocess.Popen(
        [*_COMMAND, str(theirs.fileno()), str(timeout_s), str(memory_gb)],
        env=dict(os.environ, PYTHONPATH=paths, OPENBLAS_NUM_THREADS="1"),
        pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
        start_new_session=True)
    theirs.close()

  def start(self, item, prompt, text):
    """Gives it a completion, after loading the verifier if that is new to it."""
    self.item, self._job = item, (prompt, text)
    if prompt.verifier in self._loaded:
      self._run()
    else:
      self._is_loading = True
      self.deadline = time.monotonic() + _START_S
      self._send("load", prompt)

  def receive(self):
    """Takes its message. Returns a result, or None if it is still at work."""
    try:
      kind, value = self.connection.recv()
    except (EOFError, ConnectionError):
      if not self._is_loading: return math.nan, "crash", None
      raise RuntimeError(
          f"verifier {self._job[0].verifier!r}: its process died while it "
          f"started, with exit code {self.process.wait()}.") from None
    if kind == "result": return value
    if value is not None: raise ValueError(value)
    self._loaded.add(self._job[0].verifier)
    self._run()
    return None

  def late(self):
    """The result of a completion that is not checked in time."""
    if self._is_loading:
      raise RuntimeError(f"verifier {self._job[0].verifier!r} took more than "
                         f"{_START_S:g} s to start.")
    return math.nan, "timeout", None

  def is_spent(self, result):
    """Must another take its place? What it cached may be why memory ran out."""
    self._left -= 1
    _, kind, message = result
    return (kind in ("timeout", "crash") or self._left <= 0
            or (message or "").startswith("MemoryError"))

  def kill(self):
    self.connection.close()
    try:
      os.killpg(self.process.pid, signal.SIGKILL)
    except ProcessLookupError:
      pass  # It is gone already.
    self.process.wait()

  def _run(self):
    self._is_loading = False
    self.deadline = time.monotonic() + self._timeout_s
    self._send("run", self._job)

  def _send(self, kind, value):
    try:
      self.connection.send((kind, value))
    except ConnectionError:
      pass  # It died; `receive` will find out.
