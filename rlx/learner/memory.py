"""Device memory of a run: its terms in bytes, whether they fit, and a table of them.

  need = sum of the terms held during the whole run + the largest stage (stages run in turn)

All bytes are per device.
"""
import math
import pathlib
from typing import Any

import jax


def device_bytes(mesh: jax.sharding.Mesh) -> int | None:
  """Returns the bytes that a device may use, None if it does not report them."""
  device = mesh.local_devices[0]
  if device.platform == "cpu":  # All CPU devices of XLA share the memory.
    meminfo = pathlib.Path("/proc/meminfo")
    lines = meminfo.read_text().splitlines() if meminfo.exists() else []
    free = [int(l.split()[1]) * 1024 for l in lines if l.startswith("MemAvailable:")]
    return free[0] // len(mesh.local_devices) if free else None
  return (device.memory_stats() or {}).get("bytes_limit")


def tree_bytes(tree: Any, itemsize: int | None = None) -> int:
  """Returns the bytes per device of arrays or of ShapeDtypeStructs with shardings.

  What is in the host's memory takes none.

  Args:
    itemsize: bytes per element; None: the size of each array's dtype.
  """
  def leaf(x):
    sharding = getattr(x, "sharding", None)
    if sharding and sharding.memory_kind == "pinned_host": return 0
    shape = sharding.shard_shape(x.shape) if sharding else x.shape
    return math.prod(shape) * (itemsize or x.dtype.itemsize)
  return sum(map(leaf, jax.tree.leaves(tree)))


def stage_bytes(analysis: Any, held: int) -> int:
  """Returns the bytes that a compiled step needs besides the `held` bytes of its arguments.

    arguments + outputs - aliased + temporaries - held

  Args:
    analysis: `memory_analysis()` of the compiled step.
    held: bytes of the arguments that exist whether or not the step runs, such as parameters;
      outputs written in their place are aliased.
  """
  return (analysis.argument_size_in_bytes + analysis.output_size_in_bytes
          - analysis.alias_size_in_bytes + analysis.temp_size_in_bytes - held)


def need(held: dict, stages: dict) -> int:
  """Returns the largest number of bytes that are in use at once."""
  return sum(held.values()) + max(stages.values(), default=0)


def refusal(held: dict, stages: dict, limit: int, advice: dict[str, str]) -> str | None:
  """Returns one line that says why a run does not fit and what to change, None if it fits.

  Args:
    held: {term: bytes} held during the whole run.
    stages: {term: bytes} of stages that run one at a time.
    limit: bytes of the device.
    advice: {term: what to change}, for every stage and for "held".
  """
  if need(held, stages) <= limit: return None
  over = {k: v for k, v in stages.items() if sum(held.values()) + v > limit}
  # If the held terms alone do not fit, no change to a stage helps.
  to_change = (["held"] if sum(held.values()) > limit else _by_size(over))
  largest = max(over, key=lambda term: over[term], default=None)
  terms = held | ({largest: over[largest]} if largest else {})
  return (f"a device has {show(limit)}, this run needs {show(need(held, stages))}: "
          + ", ".join(f"{k} {show(terms[k])}" for k in _by_size(terms))
          + "; " + "; ".join(dict.fromkeys(advice[k] for k in to_change)))


def table(held: dict, stages: dict, limit: int | None, source: str) -> str:
  """Returns the terms as lines of text.

  Args:
    limit: bytes of the device, None if it does not report them.
    source: how the stages were computed: "estimated" or "compiled".
  """
  row = lambda name, n: f"  {name:36} {show(n):>9}"
  return "\n".join(
      ["memory per device" + (f", of {show(limit)}" if limit is not None else "") + f" ({source})"]
      + [row(k, held[k]) for k in _by_size(held)]
      + [row(k + " *", stages[k]) for k in _by_size(stages)]
      + [row("at most", need(held, stages)) + "  (* one at a time)"])


def show(n: float) -> str:
  """Formats bytes for messages.

  Example:
    >>> memory.show(3_200_000_000)
    '3.2 GB'
  """
  return f"{n / 1e9:.1f} GB" if n >= 1e8 else f"{n / 1e6:.1f} MB"


def _by_size(terms):
  return sorted(terms, key=terms.get, reverse=True)
