"""The worker process of pool.py, which checks one completion after another.

It imports neither jax nor the records, so that it starts fast and needs little memory.
"""
import functools
import inspect
import math
import os
import pickle
import resource
import sys
import types

from rlx.core import resolve
from rlx.verifiers import errors, process, usage


def main():
  """Serves requests until the pool closes the connection."""
  functions = {}

  def answer(kind, *args):
    return (*(load(functions, *args) if kind == "load" else check(*args)), usage.take())

  def check(prompt, text, *limits):
    return run(functions[path_of(prompt)], prompt, text, *limits)

  process.serve(answer)


def path_of(prompt):
  """The path of the verifier of a prompt, or of the prompts of a batch verifier."""
  return (prompt[0] if isinstance(prompt, list) else prompt).verifier


def load(functions, path, pickled):
  """Imports or unpickles a verifier and adds it to `functions`, {path: function}.

  Returns a result like that of `run`, in which the verdict has no meaning.
  """
  try:
    functions[path] = lookup(path) if pickled is None else pickle.loads(pickled)
  except Exception as e:  # pylint: disable=broad-exception-caught
    return math.nan, "import", f"a worker process cannot import it: {type(e).__name__}: {e}"[:300]
  return 0.0, None, None


def run(fn, prompt, text, memory_mb=None):
  """Returns (verdict, kind of error or None, message or None) of one completion.

  The verdict of a verifier of steps or items is a list, in which NaN is not an error unless all
  are. A reward function gets a list of texts and gives a list of rewards, see reward_function.py; a
  batch verifier gets a list of prompts too and gives a list of such results. With `memory_mb`,
  the address space may grow by that much during the call (Linux only).
  """
  if memory_mb is None or sys.platform != "linux": return _verdict(fn, prompt, text)
  hard = resource.getrlimit(resource.RLIMIT_AS)[1]
  soft = _address_space() + memory_mb * 2**20
  if hard != resource.RLIM_INFINITY: soft = min(soft, hard)
  resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
  try:
    return _verdict(fn, prompt, text)
  finally:
    resource.setrlimit(resource.RLIMIT_AS, (hard, hard))


@functools.lru_cache(maxsize=None)
def lookup(path, key="verifier"):
  """Returns the verifier at a path, which may end with /NAME if the verifier has names.

  Raises:
    ValueError: as `resolve.lookup`. Verifiers of rlx import packages that are not its
      dependencies when they are called.
  """
  stem, slash, _ = (path, "", "") if ":" in path else path.partition("/")
  fn = resolve.lookup("verifiers", stem, key)
  if slash and not getattr(fn, "has_names", False):
    raise ValueError(f"{key}.name={path!r}: {stem} has no names; leave out /NAME.")
  return fn


@functools.lru_cache(maxsize=None)
def fields_of(fn):
  """Names of the batch's fields that a verifier reads: its arguments after prompt and text.

  The trainer puts their values for the completion into prompt.meta.
  """
  parameters = list(inspect.signature(fn).parameters.values())[2:]
  return tuple(p.name for p in parameters
               if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty)


def _verdict(fn, prompt, text):
  try:
    if isinstance(text, list): return fn(prompt, text), None, None
    returned = _best(fn, prompt, text)
    is_list = isinstance(returned, list)
    verdict = [float(v) for v in returned] if is_list else float(returned)
  except errors.Unknown as e:
    return math.nan, "unknown", str(e)[:200]
  except Exception as e:  # pylint: disable=broad-exception-caught
    kind = ("memory" if isinstance(e, MemoryError) else
            "import" if isinstance(e, ImportError) else "exception")
    return math.nan, kind, f"{type(e).__name__}: {str(e)[:200]}"
  values = verdict if is_list else [verdict]
  if values and all(map(math.isnan, values)): return math.nan, "unknown", None
  if any(v < 0 or v > 1 for v in values):
    return math.nan, "exception", f"verdict {verdict} is not in [0, 1]"
  return verdict, None, None


def _best(fn, prompt, text):
  """What a verifier returns; of several accepted answers the best, or unknown where one is unknown
  and none is right."""
  read, best = [prompt.meta[name] for name in fields_of(fn)], None
  if not getattr(prompt, "answers", ()): return fn(prompt, text, *read)
  for answer in prompt.answers:
    returned = fn(types.SimpleNamespace(**vars(prompt) | dict(answer=answer)), text, *read)
    if isinstance(returned, list) or returned == 1: return returned
    if best is None or math.isnan(returned) or returned > best: best = returned
  return best


def _address_space():
  """Returns the size of this process in bytes (Linux only)."""
  return int(os.pread(_statm(), 64, 0).split()[0]) * resource.getpagesize()


@functools.cache
def _statm():
  return os.open("/proc/self/statm", os.O_RDONLY)  # Opened once, which is what takes time.
