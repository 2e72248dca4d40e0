"""The other end of pool.py: a process that checks one completion after another.

Imports neither jax nor the records, so that it starts fast and stays small.
"""
import functools
import math
import multiprocessing.connection
import signal
import sys

from rlx.core import resolve
from rlx.verifiers import errors


def main():
  """Serves until the other end closes. Arguments: fd, timeout_s, memory_gb."""
  fd, timeout_s, memory_gb = sys.argv[1:]
  connection = multiprocessing.connection.Connection(int(fd))
  if sys.platform == "linux": _limit_memory(float(memory_gb))
  while True:
    try:
      kind, value = connection.recv()
    except (EOFError, ConnectionError):
      return
    if kind == "load":
      connection.send(("loaded", load(value)))
    else:
      # The pool kills a worker that is late. If the pool itself is gone, this
      # alarm does, even in C code that no Python thread can interrupt.
      signal.setitimer(signal.ITIMER_REAL, 2 * float(timeout_s) + 1)
      result = run(*value)
      signal.setitimer(signal.ITIMER_REAL, 0)
      connection.send(("result", result))


def load(prompt):
  """Imports what a prompt's verifier needs. Returns why it cannot, or None.

  Packages are imported on a verifier's first call. It is made here, on the
  prompt's own answer, so that no completion's deadline pays for it. Not of those
  that say `is_tried = False`.
  """
  try:
    fn = _lookup(prompt.verifier)
  except ValueError as e:
    return f"prompt {prompt.id!r}: {e}"
  if not getattr(fn, "is_tried", True): return None
  try:
    fn(prompt, prompt.answer)
  except ImportError as e:
    return f"verifier {prompt.verifier!r}: {e}"
  except Exception:  # pylint: disable=broad-exception-caught
    return None  # The completions will meet it too, and are counted.
  return None


def run(prompt, text):
  """(verdict, kind of error or None, message or None) of one completion.

  The verdict is a list where the verifier judges steps; in it, NaN is no error.
  """
  try:
    found = _lookup(prompt.verifier)(prompt, text)
    is_list = isinstance(found, list)
    verdict = [float(v) for v in found] if is_list else float(found)
  except errors.Unknown as e:
    return math.nan, "unknown", str(e)[:200]
  except Exception as e:  # pylint: disable=broad-exception-caught
    return math.nan, "exception", f"{type(e).__name__}: {str(e)[:200]}"
  if not is_list and math.isnan(verdict): return math.nan, "unknown", None
  if any(v < 0 or v > 1 for v in (verdict if is_list else [verdict])):
    return math.nan, "exception", f"verdict {verdict} is not in [0, 1]"
  return verdict, None, None


@functools.lru_cache(maxsize=None)
def _lookup(path):
  return resolve.lookup("verifiers", path, "verifier")


def _limit_memory(gb):
  import resource  # pylint: disable=g-import-not-at-top
  resource.setrlimit(resource.RLIMIT_AS, (int(gb * 2**30),) * 2)
