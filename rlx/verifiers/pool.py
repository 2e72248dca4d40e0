"""Runs verifiers in processes with a deadline and a memory limit per completion.

A completion is untrusted text: it can send a parser into an infinite loop, fill the
memory or kill the process that reads it. Such a failure never changes the verdicts of
other completions. The verdict of the completion itself is

  0      if the completion caused the failure; `failures` counts these. Otherwise a policy
         could avoid the 0 of a wrong answer by making its verdict unknown.
  NaN    if it did not: the verifier returns NaN or raises errors.Unknown, or the call with
         the reference answer, fn(prompt, prompt.answer), fails in the same way; `errors`
         counts these.

A reward function (`is_reward`, see reward_function.py) returns any numbers. It is called with
lists: of the completions of one prompt, or of all of them if it runs in this process. If that
call fails, each completion is checked alone. The reward of a completion that causes a failure is
the lowest number of the call to `verify`, at most 0.

A worker can also be lost for other reasons, for example because the machine is out of
memory. A completion whose worker was lost is therefore checked once more in a new worker.

A batch verifier (`is_batch`) is called with lists (prompts, texts), completions of whole groups,
and returns [[verdict, kind of error or None, message or None]]. It may wait for many replies of a
server at once.

What verifiers count (usage.py) is added up over the workers; `take_usage` returns it.

Attributes of the function declare what a verifier needs:

  is_bounded   True: the time is about linear in the length of the text, and nothing outside
               is changed, so the verifier may run in the trainer's process
               (verifier.workers=0).
  is_tried     False: the verifier is not called with a reference answer, because a call is
               expensive (an LLM judge). Its failures are unknown verdicts.
  timeout_s    deadline of a completion, if it is earlier than that of the config.
  is_group     True: a batch verifier that compares the completions of a prompt. They are not
               shared between hosts.
  limit_s      of a batch verifier: (prompts, texts, verifier.timeout_s) -> its deadline.
  has_names    True: a path may end with /NAME, which it reads from prompt.verifier.
  is_shared    True: all hosts call it with all completions, as it runs on all of their devices.
  memory_mb    memory limit, in addition to what the process holds after its imports (Linux
               only).

A verifier is named by its path below rlx/verifiers or as "package.module:function"
(resolve.lookup), or is one of the Python functions that the pool is given. Those of
modules that a worker can import run in the workers. All others, such as lambdas, closures
and functions of a script or notebook (__main__), run in this process, without a deadline.
"""
import collections
from concurrent import futures
import functools
import hashlib
import itertools
import json
import math
import pickle
import queue
import re
import types
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Callable

import numpy as np

from rlx.core import resolve
from rlx.verifiers import _worker, process, usage

if TYPE_CHECKING: from rlx.core import records

_LOAD_S = 120.0     # Deadline for a worker to start and to import a verifier.
_FIRST_S = 30.0     # Deadline for the first call of a verifier, which imports packages.
_STARTS = 20        # Workers in a row that may be killed before they have a verifier.
_WINDOW = 1024      # Newest verdicts that `check` examines.
_SILENT = 256       # Unknown verdicts of a verifier in a row with which a run stops.
_REPORTED = ("memory", "exception", "import", "unknown")  # Errors that a worker reports.
lookup = _worker.lookup  # The verifier at a path.


class Pool:
  """Long-lived worker processes, each checking one completion at a time.

  With `workers=0` verifiers run in this process, without a deadline: fastest, and only
  for verifiers that are marked as bounded.

  Attributes:
    errors: Counter of unknown verdicts since the start, by kind: "timeout", "crash"
      (the worker died), "memory", "exception", "import", "unknown" (the verifier
      returned NaN or raised errors.Unknown).
    failures: Counter of verdicts that are 0 because the completion made its verifier
      fail, by the same kinds.
    last_error: the newest message of an error or failure.
    recycled: number of workers that were replaced: late, dead, out of memory or old.
  """

  def __init__(self, workers, timeout_s, memory_gb=4.0, options=None,
               gather=lambda value: [value], functions=None, variables=(), is_first=True):
    """Starts no worker yet.

    Args:
      workers: number of processes; 0 runs verifiers in this process.
      timeout_s: deadline of a completion.
      memory_gb: limit of a worker (Linux only).
      options: {verifier module: its options}, added to the `meta` of prompts.
      gather: value -> values of all hosts that share the completions.
      functions: {name: (prompt, text) -> verdict}, for prompts whose `verifier` is that
        name. With `workers=0` they run in this process, marked as bounded or not.
      variables: names of environment variables that workers get, see `process.Process`, with
        that of the judge's key.
      is_first: whether this host counts verdicts that all hosts have (`is_shared`).
    """
    self._count, self._timeout_s, self._memory_gb = workers, timeout_s, memory_gb
    self._options, self._gather, self._is_first = options or {}, gather, is_first
    judge = self._options.get("judge", {})
    self._variables = (*variables, *filter(None, (
        options.get("api_key_env") for options in (judge, *judge.get("named", {}).values()))))
    self._functions, self._pickles, self._local = {}, {}, set()
    for name, fn in (functions or {}).items(): self._add(name, fn)
    self._workers = []
    self._sound = set()   # Digests of prompts whose reference answer does not fail.
    self._unsafe = set()  # Digests of prompts whose reference answer killed a worker at once.
    self._first = {}      # {path: prompt of the first call of a verifier in new workers}
    self._deaths = 0      # Workers in a row that died before they had a verifier.
    self._recent = collections.deque(maxlen=_WINDOW)  # Is the verdict unknown?
    self._failed = self._verdicts = 0  # Counts since the last call of `take_failed_share`.
    self._counted = []    # Names that `take_usage` has returned.
    usage.take()          # What an earlier pool of this process left is not this one's.
    self._lost_in_a_row = collections.Counter()  # Unknown verdicts since one was known, by path.
    self.errors, self.failures = collections.Counter(), collections.Counter()
    self.last_error = ""
    self.recycled = 0

  def require(self, verifiers: Mapping[str, str]) -> None:
    """Checks that the pool can run verifiers, {path: source of the path for messages}.

    Raises:
      ValueError: a verifier does not exist, or is not bounded and there are no workers.
    """
    for path, source in verifiers.items():
      try:
        needs_process = self.needs_process(path)
      except ValueError as e:
        raise ValueError(f"{source}: {e}") from None
      if self._count == 0 and needs_process:
        raise ValueError(
            f"verifier.workers=0: {path} ({source}) may run for ever, so it needs a process of "
            "its own; set verifier.workers >= 1 (0 is for verifiers marked is_bounded, see "
            "rlx/verifiers/pool.py).")

  def needs_process(self, path: str) -> bool:
    """Whether a verifier is not bounded, nor one of the Python functions that the pool is given.

    Raises:
      ValueError: there is none.
    """
    fn = self.lookup(path)
    return path not in self._functions and not getattr(fn, "is_bounded", False)

  def lookup(self, path: str) -> Callable:
    """Returns the function that a prompt's `verifier` names.

    Raises:
      ValueError: there is none.
    """
    if ":" in path and path not in self._functions:
      self._add(path, resolve.lookup("verifiers", path, "verifier"))
    return self._functions.get(path) or _worker.lookup(path)

  def _add(self, path, fn):
    """Adds a function that is not one of rlx/verifiers; it runs where it can."""
    self._functions[path], self._pickles[path] = fn, _pickle(fn)
    if self._pickles[path] is None: self._local.add(path)

  def verify(self, prompts: Sequence["records.Prompt"], texts: Sequence[str]) -> np.ndarray:
    """Returns the verdicts of `texts`, each by the verifier that its prompt names.

    Args:
      prompts: list of Prompt, one for each text.
      texts: list of completions.
    Returns:
      float64 [n]; NaN is unknown.
    Raises:
      ValueError: a prompt names a verifier that does not exist, that `require` refuses
        or that needs a package which is not installed.
    """
    return np.array(self._run(prompts, texts, float), np.float64)

  def verify_lists(self, prompts: Sequence["records.Prompt"], texts: Sequence[str]) -> list:
    """Returns as `verify`, for verifiers that give a number for each step or part of a completion.

    Returns:
      a list of verdicts for each text, in which NaN is unknown. The list is empty if all of
      them are unknown. It is replaced by a number for all of them if the completion made its
      verifier fail: 0.0, or the lowest of a reward function.
    """
    return [[] if isinstance(v, float) and math.isnan(v) else v
            for v in self._run(prompts, texts, list)]

  def _run(self, prompts, texts, kind):
    """Returns what the verifiers return, NaN or 0.0 for failures, and counts these."""
    if len(prompts) != len(texts):
      raise ValueError(f"{len(prompts)} prompts for {len(texts)} completions.")
    self.require({p.verifier: f"prompt {p.id!r}" for p in prompts})
    jobs = self._jobs(prompts, texts)
    here = [job for job in jobs if self._is_local(_worker.path_of(job[1]))]
    there = [job for job in jobs if not self._is_local(_worker.path_of(job[1]))]
    returned = [self._job(self._check_here, *job[1:]) for job in here] + self._in_workers(there)
    results = {i: result for (indices, *_), of_job in zip(here + there, returned)
               for i, result in zip(indices, of_job)}
    lowest = min([0.0, *(part for v, error, _ in results.values() if error is None
                         for part in (v if isinstance(v, list) else [v]))])
    for i, (verdict, error, message) in sorted(results.items()):
      if error is None and not isinstance(verdict, kind):
        raise ValueError(f"verifier {prompts[i].verifier!r} gives a "
                         f"{type(verdict).__name__}, not a {kind.__name__}: those of "
                         "verifier.steps, .spans and .by_item give a list, all others a number.")
      is_unknown = error is not None and math.isnan(verdict)
      if message is not None: self.last_error = message
      path = prompts[i].verifier
      if self._is_first or not getattr(self.lookup(path), "is_shared", False):
        if error is not None: (self.errors if is_unknown else self.failures)[error] += 1
        self._recent.append(is_unknown)
        self._failed += error is not None and not is_unknown
        self._verdicts += 1
      self._lost_in_a_row[path] = (self._lost_in_a_row[path] + 1) * is_unknown
      if error is not None and not is_unknown: results[i] = lowest, error, message
    return [results[i][0] for i in range(len(texts))]

  def _is_local(self, path): return self._count == 0 or path in self._local

  def _jobs(self, prompts, texts):
    """[(indices, prompt, text)] of the calls of verifiers; lists for a reward function."""
    def share(i):
      path = prompts[i].verifier
      if not getattr(self.lookup(path), "is_reward", False): return i
      return path if self._is_local(path) else (path, prompts[i].id)
    jobs, batches = [], {}
    for i, p in enumerate(prompts):
      if getattr(self.lookup(p.verifier), "is_batch", False):
        batches.setdefault(p.verifier, []).append(i)
    for indices in batches.values():
      for part in self._split(indices, prompts):
        jobs.append((part, [self._copy_plain(prompts[i]) for i in part], [texts[i] for i in part]))
    alone = sorted(set(range(len(texts))).difference(*batches.values()))
    for key, indices in itertools.groupby(alone, share):
      indices = list(indices)
      if isinstance(key, int): jobs.append((indices, self._copy_plain(prompts[key]), texts[key]))
      else:
        jobs.append((indices, _share([prompts[i] for i in indices]), [texts[i] for i in indices]))
    return jobs

  def _split(self, indices, prompts):
    """Indices of the completions of a batch verifier in parts for the workers, of whole groups."""
    groups = [list(g) for _, g in itertools.groupby(indices, lambda i: prompts[i].id)]
    n = 1 if self._is_local(prompts[indices[0]].verifier) else min(max(self._count, 1), len(groups))
    return [list(itertools.chain(*groups[len(groups) * w // n:len(groups) * (w + 1) // n]))
            for w in range(n)]

  def take_usage(self) -> dict[str, int]:
    """What verifiers of all hosts have counted since the last call, see usage.py.

    A name that was counted once is there from then on.
    """
    taken = collections.Counter(dict.fromkeys(self._counted, 0))
    for counts in self._gather(usage.take()): taken.update(counts)
    self._counted = sorted(taken)
    return {name: taken[name] for name in self._counted}

  def check(self, max_rate: float) -> None:
    """Raises if more than `max_rate` of the last 1024 verdicts of each host are unknown.

    Also if a verifier gave none that is known in its last 256, however few of all these are.

    All hosts have to call it. All raise the same error, so that none waits for the others.
    """
    lost_I, n_I, errors_I, last_I, silent_I = zip(*self._gather(
        [sum(self._recent), len(self._recent), self.errors, self.last_error,
         [path for path, n in self._lost_in_a_row.items() if n >= _SILENT]]))
    lost, n = sum(lost_I), sum(n_I)
    silent = [path for paths in silent_I for path in paths if max_rate < 1]
    if lost > max_rate * n or silent:
      counts: collections.Counter = sum(map(collections.Counter, errors_I), collections.Counter())
      kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(counts.items()))
      last = next((f"; last message: {text}" for text in last_I if text), "")
      raise RuntimeError(
          f"verifier.max_error_rate={max_rate}: "
          + (f"none of the last {_SILENT} verdicts of {silent[0]} is known" if silent else
             f"{lost} of the last {n} verdicts are unknown")
          + f" (since the start: {kinds}{last}).")

  def take_failed_share(self) -> float:
    """Returns the share of `failures` in the verdicts of all hosts since the last call."""
    failed, verdicts = np.sum(self._gather([self._failed, self._verdicts]), axis=0)
    self._failed = self._verdicts = 0
    return failed / max(verdicts, 1)

  def fields_of(self, path: str) -> tuple[str, ...]:
    """Names of the batch's fields that the verifier at a path reads, see _worker.fields_of."""
    return _worker.fields_of(self.lookup(path))

  def close(self) -> None:
    """Stops the workers; the next `verify` starts new ones."""
    workers, self._workers = self._workers, []  # Threads that wait for them find no others.
    for worker in workers: worker.kill()

  def _trial(self, run, prompt, text):
    """Checks one completion.

    Args:
      run: (prompt, text) -> the result of `_worker.run`.
    Returns:
      (verdict, kind of error or None, message or None).
    """
    _, error, message = result = run(prompt, text)
    if error in (None, "unknown") or not self._is_tried(prompt): return result
    if (digest := _digest(prompt)) not in self._sound:
      _, reference_error, _ = run(prompt, prompt.answer)
      if reference_error is None: self._sound.add(digest)
      elif reference_error == "unknown" or (
          reference_error in process.LOST) == (error in process.LOST):
        return result
    if error in process.LOST:
      _, error, message = result = run(prompt, text)
      if error in (None, "unknown"): return result
    return 0.0, error, message

  def _job(self, run, prompt, text):
    """As `_trial`, for a job of `_jobs`; the result is a list."""
    if not isinstance(text, list): return [self._trial(run, prompt, text)]
    rewards, error, message = run(prompt, text)
    if isinstance(prompt, list):
      if error is None: return list(map(tuple, rewards))
      return [(math.nan, error, message)] * len(text)
    if error is None: return [_make_reply(reward) for reward in rewards]
    results = []
    for i, completion in enumerate(text):
      rewards, *result = self._trial(run, prompt.parts[i], [completion])
      results.append(_make_reply(rewards[0]) if isinstance(rewards, list) else (rewards, *result))
    return results

  def _check_here(self, prompt, text):
    fn = self.lookup(_worker.path_of(prompt))
    if isinstance(prompt, list): return _worker.run(fn, prompt, text)
    if prompt.verifier not in self._first and self._is_tried(prompt):
      _admit(prompt, _worker.run(fn, prompt, prompt.answer))
      self._first[prompt.verifier] = prompt
    return _worker.run(fn, prompt, text)

  def _in_workers(self, jobs):
    """Returns the results of jobs; each worker has a thread that waits for its replies."""
    if not jobs: return []
    while len(self._workers) < min(self._count, len(jobs)):
      self._workers.append(self._worker())
    idle = queue.SimpleQueue()
    for w in range(len(self._workers)): idle.put(w)
    def work(job):
      w, (_, prompt, text) = idle.get(), job
      try:
        return self._job(functools.partial(self._check_in_worker, w), prompt, text)
      finally:
        idle.put(w)
    with futures.ThreadPoolExecutor(len(self._workers)) as threads:
      try:
        return list(threads.map(work, jobs))
      except BaseException:
        self.close()  # Ends all waiting, also for completions that nobody wants any more.
        raise

  def _check_in_worker(self, w, prompt, text):
    """Lets worker `w` check a text, after it has loaded the verifier."""
    given, prompt = prompt, prompt[0] if isinstance(prompt, list) else prompt
    fn, path = self.lookup(prompt.verifier), prompt.verifier
    if self._workers[w].process.poll() is not None: self._replace(w)  # It died while it was idle.
    while path not in self._workers[w].loaded:
      _, error, _ = reply = self._ask(w, _LOAD_S, "load", path, self._pickles.get(path), loads=True)
      _admit(prompt, reply)
      if error in process.LOST:
        self._deaths += 1
        is_new, code = not self._workers[w].loaded, self._replace(w)
        if is_new and error == "timeout":
          raise RuntimeError(
              f"verifier {path!r}: its process took more than {_LOAD_S:g} s to start.")
        if is_new and code > 0 or self._deaths == _STARTS:
          raise RuntimeError(f"verifier {path!r}: its process died while it started, with exit "
                             f"code {code}.")
        continue  # It was killed from outside.
      self._deaths = 0
      # The first call of a verifier imports packages. This call uses a reference answer, so
      # that the import does not count towards the deadline of a completion.
      first = self._first.get(path, prompt)
      if self._is_tried(prompt) and _digest(first) not in self._unsafe:
        _, error, _ = reply = self._ask(w, _FIRST_S, "run", first, first.answer, loads=True)
        _admit(prompt, reply)
        if error in process.LOST:
          self._unsafe.add(_digest(first))
          self._first.pop(path, None)
          self._replace(w)
          continue
        self._first[path] = first
      self._workers[w].loaded.add(path)
    limit_s = min(self._timeout_s, getattr(fn, "timeout_s", math.inf))
    if isinstance(text, list): limit_s *= len(text)
    if hasattr(fn, "limit_s"): limit_s = fn.limit_s(given, text, self._timeout_s)
    _, error, _ = reply = self._ask(w, limit_s, "run", given, text, getattr(fn, "memory_mb", None))
    if error in process.LOST or self._workers[w].is_old: self._replace(w)
    return reply

  def _worker(self):
    return process.Process("rlx.verifiers._worker", self._memory_gb, self._variables)

  def _ask(self, w, limit_s, kind, *args, loads=False):
    """The reply of a worker as the result of `_worker.run`."""
    line, error = self._workers[w].ask(limit_s, kind, *args, loads=loads)
    if error: return math.nan, error, None
    n_rewards = len(args[1]) if kind == "run" and isinstance(args[1], list) else None
    is_batch = n_rewards is not None and isinstance(args[0], list)
    return _read(line, self._workers[w].number, n_rewards, is_batch) or (math.nan, "crash", None)

  def _replace(self, w):
    """Replaces a worker. Returns the exit code of the old one."""
    self.recycled += 1
    code = self._workers[w].kill()
    self._workers[w] = self._worker()
    return code

  def _is_tried(self, prompt):
    return getattr(self.lookup(prompt.verifier), "is_tried", True)

  def _copy_plain(self, prompt):
    """Copies a Prompt into an object that workers can unpickle without importing jax."""
    return types.SimpleNamespace(id=prompt.id, text=prompt.text, answer=prompt.answer,
                                 answers=getattr(prompt, "answers", ()), verifier=prompt.verifier,
                                 meta={**prompt.meta, **self._options})


def _pickle(fn):
  """Pickles a function for a worker; returns None if a worker cannot import it."""
  try:
    content = pickle.dumps(fn)
  except Exception:  # pylint: disable=broad-exception-caught
    return None  # Its parts may raise any exception.
  # Functions are pickled by name, and the module __main__ of a worker is a different one.
  return None if b"__main__" in content else content


def _digest(prompt):
  return hashlib.sha256(pickle.dumps(prompt)).digest()


def _admit(prompt, reply):
  """Raises if a reply says that the verifier, or a package that it needs, cannot be imported."""
  _, error, message = reply
  if error == "import": raise ValueError(f"verifier {prompt.verifier!r}: {message}")


def _share(prompts):
  """The prompts of a call of a reward function as one, and each of them alone in `parts`."""
  def join_prompts(prompts, **more):
    return types.SimpleNamespace(
        id=prompts[0].id, verifier=prompts[0].verifier, answer=[p.answer for p in prompts],
        meta=dict(rows=[p.meta["row"] for p in prompts]), **more)
  return join_prompts(prompts, parts=[join_prompts([p]) for p in prompts])


def _make_reply(reward):
  """(reward, kind of error or None, message or None); NaN is unknown."""
  return reward, "unknown" if isinstance(reward, float) and math.isnan(reward) else None, None


def _read(line, number, n_rewards=None, is_batch=False):
  """Returns the result of `_worker.run` from an untrusted line; None if it is malformed.

  What the worker has counted since its last reply is added to the counts of this process.

  Args:
    n_rewards: the result is a list of so many rewards. None: it is a verdict in [0, 1].
    is_batch: the result is a list of so many results instead.
  """
  try:
    reply_to, verdict, error, message, counts = json.loads(line)
    for name, n in counts.items():
      if re.fullmatch(r"[a-z]\w*/\w+", name) and 0 <= n < 2**53: usage.count(name, int(n))
  except (ValueError, TypeError, AttributeError, RecursionError):
    return None
  if reply_to != number or not isinstance(message, str | None): return None
  if error is not None: return (math.nan, error, message) if error in _REPORTED else None
  if is_batch:
    is_valid = isinstance(verdict, list) and len(verdict) == n_rewards and all(
        isinstance(part, list) and len(part) == 3 and _is_verdict(part[0], unknown=True)
        and part[1] in (None, *_REPORTED) and isinstance(part[2], str | None) for part in verdict)
  elif n_rewards is not None:
    is_valid = isinstance(verdict, list) and len(verdict) == n_rewards and all(
        type(v) is float and not math.isinf(v)
        for part in verdict for v in (part if isinstance(part, list) else [part]))
  else:
    is_valid = _is_verdict(verdict)
  return (verdict, None, None) if is_valid else None


def _is_verdict(verdict, unknown=False):
  """Whether a value is a verdict in [0, 1], NaN too if `unknown`, or a list of them or of NaN."""
  is_list = isinstance(verdict, list)
  return all(type(v) is float and (0 <= v <= 1 or (is_list or unknown) and math.isnan(v))
             for v in (verdict if is_list else [verdict]))
