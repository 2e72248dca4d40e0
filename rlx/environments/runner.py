"""Runs environments in processes with a deadline and a memory limit for each step.

A reply of the policy is untrusted text: the step that it causes can hang, fill the memory or kill
its process. Environments are pickled between steps, so a step that fails is repeated from the state
before it, in a new process:

  the repetition succeeds       its result counts; the first process was lost for another reason
  it fails, an empty reply      the replies are at fault: the policy reads that its step failed,
  does not, or an episode of    and the episode continues from the state before (`failures` counts
  as many empty replies does    these). If both processes were lost, a third one is asked before
  not                           that (two can be lost for another reason)
  it fails, and so do these     the environment is at fault: the episode's outcome is unknown
                                (`errors` counts these)

An outcome that a reply could make unknown would protect a policy from the 0 of a failure. An
earlier reply can cause the failure as well, such as one that fills the state almost to its limit.
"""
import collections
import dataclasses
import json
import math
import queue
import threading
import time
import types
from collections.abc import Sequence
from concurrent import futures
from typing import TYPE_CHECKING, Any

from rlx.core import resolve
from rlx.environments import _worker, interface
from rlx.verifiers import process

if TYPE_CHECKING: from rlx.core import records

_FIRST_S = 60.0  # Deadline of a process for its imports and a first episode.
_KINDS = dict(timeout="took too long", crash="crashed", exception="failed")


@dataclasses.dataclass(frozen=True)
class Taken:
  """A step that was taken.

  Attributes:
    step: None: the environment failed for another reason than the reply.
    state: the pickled environment after it.
    failed: whether the reply made it fail.
    seconds: that it took.
  """
  step: interface.Step | None
  state: str
  failed: bool = False
  seconds: float = 0.0


class _State(str):
  """A pickled environment that knows its episode: the pickle at its start, and the steps since."""
  start: str = ""
  steps: int = 0


def _follow(start, steps, state):
  state = _State(state)
  state.start, state.steps = start, steps
  return state


def check(path: str, options: dict[str, Any], workers: int) -> None:
  """Checks what `Runner` is given, before anything else is read.

  Raises:
    ValueError: there is no such environment or option, or it needs processes.
  """
  factory = _worker.factory(path)
  resolve.bind("environments", dict(options, name=path), "environment", n_given=0)
  if workers == 0 and not getattr(factory, "is_bounded", False):
    raise ValueError(f"episodes.workers=0: a step of {path} may run for ever, so it needs a "
                     "process of its own; set episodes.workers >= 1 (0 is for environments "
                     "marked is_bounded).")


class Runner:
  """Worker processes that take steps in episodes, each one at a time.

  With `workers=0` steps are taken in this process, without a deadline: only for environments whose
  steps are known to end.

  Attributes:
    errors, failures: Counters by kind: "timeout", "crash" (the process died, or was out of
      memory), "exception".
    last_error: the newest message of an error or failure.
  """

  def __init__(self, path: str, options: dict[str, Any], *, workers: int, timeout_s: float,
               memory_gb: float = 4.0, variables: Sequence[str] = ()):
    """Starts no process yet.

    Args:
      path: of the environment, below rlx/environments or "package.module:Class".
      options: of the environment.
      variables: names of environment variables that the processes get, see `process.Process`.
    Raises:
      ValueError: there is no such environment or option.
    """
    check(path, options, workers)
    self._path, self._options, self._count = path, options, workers
    self._timeout_s, self._memory_gb, self._variables = timeout_s, memory_gb, variables
    self._processes: list[process.Process] = []
    self._idle: queue.SimpleQueue = queue.SimpleQueue()
    self._threads: futures.ThreadPoolExecutor | None = None
    self._lock = threading.Lock()
    self._first: Any = None  # A prompt that episodes start from.
    self.errors: collections.Counter[str] = collections.Counter()
    self.failures: collections.Counter[str] = collections.Counter()
    self.last_error = ""

  @property
  def role(self) -> str:
    """The role of the observations' messages in a chat."""
    return getattr(_worker.factory(self._path), "role", "user")

  def reset(self, prompt: "records.Prompt") -> tuple[str | list, str]:
    """(opening text or messages, state) of an episode.

    Raises:
      ValueError: the environment cannot start from this prompt.
    """
    return self.begin([prompt])[0]

  def begin(self, prompts: Sequence["records.Prompt"]) -> list[tuple[str | list, str]]:
    """`reset` of several prompts, side by side."""
    plain = [types.SimpleNamespace(id=p.id, text=p.text, answer=p.answer, verifier=p.verifier,
                                   meta=p.meta) for p in prompts]
    jobs = [self._submit(self._ask_twice, "reset", self._path, self._options, p) for p in plain]
    out = []
    for prompt, job in zip(prompts, jobs):
      reply, error, message = job.result()
      if error is not None:
        raise ValueError(f"environment.name={self._path!r}: prompt {prompt.id!r}: {message}")
      opening, state = reply
      if not isinstance(opening, str | list) or not isinstance(state, str):
        raise ValueError(f"environment.name={self._path!r}: prompt {prompt.id!r}: reset returned "
                         f"{opening!r:.60}; a text or chat messages.")
      out.append((opening, _follow(state, 0, state)))
    self._first = self._first or plain[0]
    return out

  def step(self, state: str, reply: str) -> "futures.Future[Taken]":
    """A Future of the Taken step of a reply from a state, that of `reset` or of a step."""
    return self._submit(self._step, state, reply)

  def close(self) -> None:
    """Stops the processes; the next request starts new ones."""
    with self._lock:
      threads, processes = self._threads, self._processes
      self._threads, self._processes, self._idle = None, [], queue.SimpleQueue()
    for worker in processes: worker.kill()
    if threads is not None: threads.shutdown(wait=False, cancel_futures=True)

  def _submit(self, fn, *args):
    if self._count == 0:
      job: futures.Future = futures.Future()
      job.set_result(fn(*args))
      return job
    with self._lock:
      if self._threads is None:
        self._threads = futures.ThreadPoolExecutor(self._count)
        self._processes = [self._start_process() for _ in range(self._count)]
        for w in range(self._count): self._idle.put(w)
      return self._threads.submit(fn, *args)

  def _start_process(self):
    return process.Process("rlx.environments._worker", self._memory_gb, self._variables)

  def _step(self, state, reply):
    start, taken = time.monotonic(), self._take_step(state, reply)
    return dataclasses.replace(taken, seconds=time.monotonic() - start)

  def _take_step(self, state, reply):
    reply_, error, message = self._ask_twice("step", str(state), reply)
    is_blamed = error is not None and self._goes_on_without(state)
    if is_blamed and error in process.LOST:
      reply_, error, message = self._ask("step", str(state), reply)
    if error is None:
      *step, after = reply_
      return Taken(interface.Step(*step), _follow(state.start, state.steps + 1, after))
    self.last_error = message
    (self.failures if is_blamed else self.errors)[error] += 1
    if not is_blamed: return Taken(None, state)
    return Taken(interface.Step(f"The step {_KINDS[error]}."), state, failed=True)

  def _goes_on_without(self, state):
    """Whether an empty reply goes on from a state, or as many from the start of its episode."""
    for begin, steps in ((str(state), 1), (state.start, state.steps + 1)):
      for _ in range(steps):
        reply, error, _ = self._ask_twice("step", begin, "")
        if error is not None: break
        _, _, done, *_, begin = reply
        if done: return True
      else: return True
    return False

  def _ask_twice(self, kind, *args):
    """As `_ask`; a request that fails is repeated once."""
    result = self._ask(kind, *args)
    return result if result[1] is None else self._ask(kind, *args)

  def _ask(self, kind, *args):
    """(items of the reply, kind of error or None, message)."""
    if self._count == 0:
      try:
        return _read(_worker.answer(kind, *args))
      except ValueError:
        return None, "exception", "the step gives something else than a Step of plain values"
    w = self._idle.get()
    try:
      worker = self._processes[w]
      if worker.process.poll() is not None or worker.is_old:
        worker = self._replace(w)
      if not worker.loaded:
        # It imports packages, which does not count towards the deadline of a step.
        prompt = args[-1] if kind == "reset" else self._first
        worker.ask(_FIRST_S, "reset", self._path, self._options, prompt, loads=True)
        worker.loaded.add(self._path)
      line, error = worker.ask(self._timeout_s, kind, *args)
      if error is not None:
        self._replace(w)
        return None, error, f"the step {_KINDS[error]}"
      try:
        number, *reply = json.loads(line)
        if number != worker.number: raise ValueError
        return _read(reply)
      except (ValueError, TypeError, RecursionError):
        self._replace(w)
        return None, "crash", "the process replied with something else"
    finally:
      self._idle.put(w)

  def _replace(self, w):
    self._processes[w].kill()
    self._processes[w] = self._start_process()
    return self._processes[w]


def _read(reply):
  """(items, kind of error or None, message) of an untrusted reply, whose last item is a message.

  Raises:
    ValueError: it is malformed.
  """
  *items, message = reply
  if message is not None: return None, "exception", str(message)
  if len(items) == 6:
    observation, reward, done, info, verdict, state = items
    is_number = lambda x: type(x) in (int, float) and math.isfinite(x)
    if not (isinstance(observation, str)
            and all(x is None or is_number(x) for x in (reward, verdict))
            and isinstance(done, bool) and isinstance(info, dict)
            and all(map(is_number, info.values())) and isinstance(state, str)):
      raise ValueError("malformed")
  return items, None, None
