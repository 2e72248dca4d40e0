"""Runs verifiers in processes with a deadline and a memory limit per completion.

A completion is untrusted text: it can send a parser into an infinite loop, fill the
memory or kill the process that reads it. Whatever happens, the verdicts of the other
completions are not touched, and its own is

  0      if the completion caused it; `failures` counts these. A policy could otherwise
         trade the 0 of a wrong answer for "unknown".
  NaN    if it cannot have: the verifier says NaN or raises errors.Unknown, or the
         reference alone, fn(prompt, prompt.answer), fails in the same way; `errors`.

A worker can also be lost to something else (the machine is out of memory, or stands
still). A completion whose worker was lost is therefore checked once more in a new one.

What a verifier needs, it says with attributes of the function:

  is_bounded   True: runs in about linear time of its text and touches nothing outside,
               so that it may run in the trainer's process (verifier.workers=0).
  is_tried     False: is not called on a reference answer (a judge: it costs a request).
               What fails without being tried is unknown.
  timeout_s    limits of a completion, where those of the config are larger;
  memory_mb    on top of what the process holds once packages are imported (Linux only).

A verifier is named by its path below rlx/verifiers or as "package.module:function"
(resolve.lookup), or is one of the Python functions that the pool is given. Those of
modules that a worker can import run in the workers. All others, such as lambdas, closures
and functions of a script or notebook (__main__), run in this process, without a deadline.
"""
import collections
import functools
import hashlib
import json
import math
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import time
import types

import numpy as np

from rlx.verifiers import _worker

_COMMAND = (sys.executable, "-c",
            "from rlx.verifiers import _worker; _worker.main()")
_LOAD_S = 120.0     # For a worker to start and to import a verifier,
_FIRST_S = 30.0     # and for its first call, which imports packages.
_STARTS = 20        # Workers in a row that may be killed before they have a verifier.
_WINDOW = 1024      # Verdicts that `check` looks back on.
_LIFE = 2000        # Requests that a worker answers before a new one takes its place.
_MAX_REPLY = 2**22  # Bytes.
_LOST = ("timeout", "crash", "memory")  # Another worker takes the place of this one.
_SAID = ("memory", "exception", "import", "unknown")  # By a worker about a text.


class Pool:
  """Long-lived worker processes, each checking one completion at a time.

  With `workers=0` verifiers run in this process, without a deadline: fastest, and only
  for verifiers that are marked as bounded.

  Attributes:
    errors: Counter of unknown verdicts since the start, by kind: "timeout", "crash"
      (the worker died), "memory", "exception", "import", "unknown" (the verifier said
      NaN or raised errors.Unknown).
    failures: Counter of verdicts that are 0 because the completion made its verifier
      fail, by the same kinds.
    last_error: the newest message of either, such as an exception's.
    recycled: workers that gave way to new ones: late, dead, out of memory or old.
  """

  def __init__(self, workers, timeout_s, memory_gb=4.0, options=None,
               gather=lambda value: [value], functions=None):
    """`timeout_s` is per completion, `memory_gb` per worker (Linux only).

    Args:
      options: {verifier module: its options}, added to the `meta` of prompts.
      gather: gives the values of all processes that share the completions.
      functions: {name: (prompt, text) -> verdict}, for prompts whose `verifier` is that
        name. With `workers=0` they run in this process, marked as bounded or not.
    """
    if workers < 0:
      raise ValueError(f"verifier.workers={workers}: must be >= 0.")
    if timeout_s <= 0:
      raise ValueError(f"verifier.timeout_s={timeout_s}: must be > 0.")
    self._count, self._timeout_s, self._memory_gb = workers, timeout_s, memory_gb
    self._options, self._gather = options or {}, gather
    self._functions = functions or {}
    self._pickles = {name: _pickled(fn) for name, fn in self._functions.items()}
    self._local = {name for name, content in self._pickles.items() if content is None}
    self._workers = []
    self._sound = set()   # Digests of prompts whose reference alone does not fail,
    self._unsafe = set()  # and of those whose reference was a lost worker's first call.
    self._first = {}      # {path: prompt that is a verifier's first call in new workers}
    self._deaths = 0      # Of workers in a row that had no verifier yet.
    self._recent = collections.deque(maxlen=_WINDOW)
    self._failed = self._judged = 0  # Verdicts since `failed_share` was asked for.
    self.errors, self.failures = collections.Counter(), collections.Counter()
    self.last_error = ""
    self.recycled = 0

  def require(self, verifiers):
    """Checks that the pool can run verifiers: {path below rlx/verifiers: who names it}.

    Raises:
      ValueError: one does not exist, or is not bounded where there are no workers.
    """
    for path, source in verifiers.items():
      try:
        fn = self.lookup(path)
      except ValueError as e:
        raise ValueError(f"{source}: {e}") from None
      is_ours = path not in self._functions
      if self._count == 0 and is_ours and not getattr(fn, "is_bounded", False):
        raise ValueError(
            f"verifier.workers=0: {path} ({source}) may run for ever, which only a process of "
            "its own survives; set verifier.workers >= 1 (0 is for verifiers marked is_bounded, "
            "see rlx/verifiers/pool.py).")

  def lookup(self, path):
    """The function that a prompt's `verifier` names.

    Raises:
      ValueError: there is none.
    """
    return self._functions.get(path) or _worker.lookup(path)

  def verify(self, prompts, texts):
    """Verdicts of `texts`, each by the verifier that its prompt names.

    Args:
      prompts: list of Prompt, one for each text.
      texts: list of completions.
    Returns:
      float64 [n]; NaN = could not tell.
    Raises:
      ValueError: a prompt names a verifier that does not exist, that `require` refuses
        or that needs a package which is not installed.
    """
    return np.array(self._judge(prompts, texts, float), np.float64)

  def verify_steps(self, prompts, texts):
    """As `verify`, by verifiers that judge each step of a completion.

    Returns:
      of each text a list of verdicts, NaN = could not tell; [] if that is so of all of
      them, and 0.0 if the completion made its verifier fail: no step of it is right.
    """
    return [[] if isinstance(v, float) and math.isnan(v) else v
            for v in self._judge(prompts, texts, list)]

  def _judge(self, prompts, texts, kind):
    """What the verifiers return; NaN or 0.0 where they fail, which it counts."""
    if len(prompts) != len(texts):
      raise ValueError(f"{len(prompts)} prompts for {len(texts)} completions.")
    self.require({p.verifier: f"prompt {p.id!r}" for p in prompts})
    local = [i for i, p in enumerate(prompts)
             if self._count == 0 or p.verifier in self._local]
    results = self._in_process(prompts, texts, local)
    try:
      results |= self._in_workers(prompts, texts, set(range(len(texts))) - set(local))
    except BaseException:
      self.close()  # Workers may be busy with completions of this call.
      raise
    for i, (verdict, error, message) in sorted(results.items()):
      if error is None and not isinstance(verdict, kind):
        raise ValueError(f"verifier {prompts[i].verifier!r} gives a "
                         f"{type(verdict).__name__}, not a {kind.__name__}: those of "
                         "verifier.steps give a list, all others a number.")
      is_unknown = error is not None and math.isnan(verdict)
      if error is not None: (self.errors if is_unknown else self.failures)[error] += 1
      if message is not None: self.last_error = message
      self._recent.append(is_unknown)
      self._failed += error is not None and not is_unknown
    self._judged += len(texts)
    return [results[i][0] for i in range(len(texts))]

  def check(self, max_rate):
    """Raises if more than `max_rate` of the last 1024 verdicts of each process are unknown.

    All processes call it and raise the same: one alone would leave the others waiting.
    """
    lost_I, n_I, errors_I, last_I = zip(*self._gather(
        [sum(self._recent), len(self._recent), self.errors, self.last_error]))
    lost, n = sum(lost_I), sum(n_I)
    if lost > max_rate * n:
      errors = sum(map(collections.Counter, errors_I), collections.Counter())
      kinds = ", ".join(f"{k} {c}" for k, c in sorted(errors.items()))
      last = next((f"; last message: {text}" for text in last_I if text), "")
      raise RuntimeError(
          f"verifier.max_error_rate={max_rate}: {lost} of the last {n} verdicts "
          f"are unknown (since the start: {kinds}{last}).")

  def failed_share(self):
    """Of the verdicts of all processes since the last call, those counted in `failures`."""
    failed, judged = np.sum(self._gather([self._failed, self._judged]), axis=0)
    self._failed = self._judged = 0
    return failed / max(judged, 1)

  def close(self):
    """Ends the workers; the next `verify` starts new ones."""
    for worker in self._workers: worker.kill()
    self._workers = []

  def _trial(self, run, prompt, text):
    """Checks one completion; a generator that waits for replies where `run` does.

    Args:
      run: (prompt, text) -> a generator that returns what `_worker.run` does.
    Returns:
      (verdict, kind of error or None, message or None).
    """
    _, error, message = result = yield from run(prompt, text)
    if error in (None, "unknown") or not self._is_tried(prompt): return result
    if (digest := _digest(prompt)) not in self._sound:
      _, of_reference, _ = yield from run(prompt, prompt.answer)
      if of_reference is None: self._sound.add(digest)
      elif of_reference == "unknown" or (of_reference in _LOST) == (error in _LOST):
        return result
    if error in _LOST:
      _, error, message = result = yield from run(prompt, text)
      if error in (None, "unknown"): return result
    return 0.0, error, message

  def _in_process(self, prompts, texts, indices):
    results = {}
    for i in indices:
      try:
        next(self._trial(self._here, self._plain(prompts[i]), texts[i]))
      except StopIteration as end:
        results[i] = end.value
    return results

  def _here(self, prompt, text):
    yield from ()  # Waits for nobody.
    fn = self.lookup(prompt.verifier)
    if prompt.verifier not in self._first and self._is_tried(prompt):
      _admit(prompt, _worker.run(fn, prompt, prompt.answer))
      self._first[prompt.verifier] = prompt
    return _worker.run(fn, prompt, text)

  def _in_workers(self, prompts, texts, indices):
    todo, results = collections.deque(sorted(indices)), {}
    at_work = {}  # {number of a worker: (index of its completion, trial)}
    while len(self._workers) < min(self._count, len(indices)):
      self._workers.append(_Worker(self._memory_gb))
    while len(results) < len(indices):
      for w in range(len(self._workers)):
        if w not in at_work and todo:
          i = todo.popleft()
          run = functools.partial(self._there, w)
          at_work[w] = i, self._trial(run, self._plain(prompts[i]), texts[i])
          next(at_work[w][1])
      for w, reply in self._replies(at_work):
        i, trial = at_work[w]
        try:
          trial.send(reply)
        except StopIteration as end:
          results[i] = end.value
          del at_work[w]
    return results

  def _there(self, w, prompt, text):
    """Has worker `w` check a text, after loading the verifier if that is new to it.

    Yields when it has asked; is sent the reply.
    """
    fn, path = self.lookup(prompt.verifier), prompt.verifier
    if self._workers[w].process.poll() is not None: self._replace(w)  # It died idle.
    while path not in self._workers[w].loaded:
      _, error, _ = reply = yield self._workers[w].ask(
          _LOAD_S, "load", path, self._pickles.get(path))
      _admit(prompt, reply)
      if error in _LOST:
        self._deaths += 1
        is_new, code = not self._workers[w].loaded, self._replace(w)
        if is_new and error == "timeout":
          raise RuntimeError(
              f"verifier {path!r}: its process took more than {_LOAD_S:g} s to start.")
        if is_new and code > 0 or self._deaths == _STARTS:
          raise RuntimeError(f"verifier {path!r}: its process died while it started, with exit "
                             f"code {code}.")
        continue  # Killed, by whomever.
      self._deaths = 0
      # Packages are imported on a verifier's first call. It is made here, on a reference
      # answer, so that no completion's deadline pays for it.
      first = self._first.get(path, prompt)
      if self._is_tried(prompt) and _digest(first) not in self._unsafe:
        _, error, _ = reply = yield self._workers[w].ask(_FIRST_S, "run", first, first.answer)
        _admit(prompt, reply)
        if error in _LOST:
          self._unsafe.add(_digest(first))
          self._first.pop(path, None)
          self._replace(w)
          continue
        self._first[path] = first
      self._workers[w].loaded.add(path)
    limit_s = min(self._timeout_s, getattr(fn, "timeout_s", math.inf))
    _, error, _ = reply = yield self._workers[w].ask(
        limit_s, "run", prompt, text, getattr(fn, "memory_mb", None))
    if error in _LOST or self._workers[w].is_old(): self._replace(w)
    return reply

  def _replies(self, at_work):
    """[(number, reply)] of the workers that have one or are late; waits for something."""
    busy, replies, sockets = {w: self._workers[w] for w in at_work}, [], select.poll()
    for worker in busy.values(): sockets.register(worker.connection, worker.events())
    wait_s = min(worker.deadline for worker in busy.values()) - time.monotonic()
    ready = {fd for fd, _ in sockets.poll(1000 * max(wait_s, 0))}
    for w, worker in busy.items():
      reply = worker.exchange() if worker.connection.fileno() in ready else None
      if reply is None and time.monotonic() >= worker.deadline: reply = math.nan, "timeout", None
      if reply is not None: replies.append((w, reply))
    return replies

  def _replace(self, w):
    """Puts a new worker into a place. Returns the exit code of the old one."""
    self.recycled += 1
    code = self._workers[w].kill()
    self._workers[w] = _Worker(self._memory_gb)
    return code

  def _is_tried(self, prompt):
    return getattr(self.lookup(prompt.verifier), "is_tried", True)

  def _plain(self, prompt):
    """A Prompt without its class, whose module imports jax."""
    return types.SimpleNamespace(
        id=prompt.id, text=prompt.text, answer=prompt.answer,
        verifier=prompt.verifier, meta={**prompt.meta, **self._options})


class _Worker:
  """One process, what it is asked and what it has said so far."""

  def __init__(self, memory_gb):
    self.deadline = math.inf  # Of its reply, on time.monotonic.
    self.loaded = set()       # Paths of verifiers.
    self._number = 0          # Of the newest request; its reply has the same.
    self._unsent, self._said = memoryview(b""), bytearray()
    self.connection, theirs = socket.socketpair()
    # Neither a message that it does not read nor one that it does not end may
    # make this process wait beyond the deadline.
    self.connection.setblocking(False)
    # Not multiprocessing.Process: its children import the main module again,
    # and with it jax. A session of its own, so that a kill takes along
    # whatever the verifier has started, and Ctrl-C does not reach it.
    paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
    self.process = subprocess.Popen(
        [*_COMMAND, str(theirs.fileno()), str(memory_gb)],
        env=dict(os.environ, PYTHONPATH=paths, OPENBLAS_NUM_THREADS="1"),
        pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
        start_new_session=True)
    theirs.close()

  def ask(self, limit_s, kind, *args):
    """Sends a request, of which `exchange` gives the reply."""
    self._number += 1
    self.deadline = time.monotonic() + limit_s
    self._unsent = memoryview(pickle.dumps((self._number, limit_s, kind, args)))
    self._send()

  def events(self):
    """What to wait for before `exchange` has something to do."""
    return select.POLLIN | (select.POLLOUT if self._unsent else 0)

  def exchange(self):
    """Sends and receives what there is. Returns the reply once it is whole, else None."""
    self._send()
    try:
      part = self.connection.recv(2**16)
    except BlockingIOError:
      return None
    except OSError:
      part = b""
    self._said += part
    if part and len(self._said) <= _MAX_REPLY and not part.endswith(b"\n"): return None
    said, self._said = self._said, bytearray()
    return _read(said, self._number) or (math.nan, "crash", None)

  def is_old(self):
    return self._number >= _LIFE

  def kill(self):
    """Returns its exit code, negative if a signal ended it."""
    self.connection.close()
    try:
      os.killpg(self.process.pid, signal.SIGKILL)
    except ProcessLookupError:
      pass  # It is gone already.
    return self.process.wait()

  def _send(self):
    try:
      while self._unsent: self._unsent = self._unsent[self.connection.send(self._unsent):]
    except BlockingIOError:
      pass
    except OSError:
      self._unsent = memoryview(b"")  # It died; receiving finds that out.


def _pickled(fn):
  """A function as bytes for a worker; None if a worker cannot have it."""
  try:
    content = pickle.dumps(fn)
  except Exception:  # pylint: disable=broad-exception-caught
    return None  # Whatever its parts raise.
  # A function is pickled as its name, and __main__ of a worker is another module.
  return None if b"__main__" in content else content


def _digest(prompt):
  return hashlib.sha256(pickle.dumps(prompt)).digest()


def _admit(prompt, reply):
  """Raises if a verifier's first reply says that it cannot work on this machine."""
  _, error, message = reply
  if error == "import": raise ValueError(f"verifier {prompt.verifier!r}: {message}")


def _read(line, number):
  """What `_worker.run` returned, from a line of anything; None: it is not that."""
  try:
    reply_to, verdict, error, message = json.loads(line)
  except (ValueError, TypeError, RecursionError):
    return None
  if reply_to != number or not isinstance(message, str | None): return None
  if error is not None: return (math.nan, error, message) if error in _SAID else None
  of_steps = isinstance(verdict, list)  # Of them alone, NaN is no error.
  is_valid = all(type(v) is float and (0 <= v <= 1 or of_steps and math.isnan(v))
                 for v in (verdict if of_steps else [verdict]))
  return (verdict, None, None) if is_valid else None
