"""Counts that verifiers make, such as requests and tokens: {name of a metric: number}.

A verifier counts in the process in which it runs. The pool adds up the counts of its workers, and
a step logs what was counted since the last one.

  usage.count("judge/requests")
"""
import collections
import threading

_counts: collections.Counter = collections.Counter()
_lock = threading.Lock()


def count(name: str, n: int = 1) -> None:
  """Adds n to the metric of this name."""
  with _lock: _counts[name] += n


def take() -> dict[str, int]:
  """What was counted in this process since the last call."""
  with _lock:
    taken = dict(_counts)
    _counts.clear()
  return taken
