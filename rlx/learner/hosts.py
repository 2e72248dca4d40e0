"""Runs with several processes: how they connect and how they exchange host data.

Every process runs the same loop on the same host data. Processes differ only in the rows on their
devices and in the completions that they verify. Values known to a single process (verdicts,
signals) are gathered by all processes before any of them acts on them.
"""
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.experimental import multihost_utils
import numpy as np

_HEARTBEAT_TIMEOUT_S = 60  # The other processes exit if one does not respond for this long.


def start(spec: str) -> None:
  """Connects the processes of a run; must be called before any other use of a device.

  Args:
    spec: "auto" if the cluster describes its processes (TPU pods, SLURM, Open MPI), else
      "ADDRESS:PORT,COUNT,INDEX" with the address of the first process.
  Raises:
    ValueError: spec has another form, or the other processes do not connect.
  """
  given: dict[str, Any] = {}
  if spec != "auto":
    if not (parts := re.fullmatch(r"([^\s,]+:\d{1,5}),(\d{1,6}),(\d{1,6})", spec)):
      raise ValueError(f"hosts={spec!r:.200}: auto or ADDRESS:PORT,COUNT,INDEX.")
    given = dict(coordinator_address=parts[1], num_processes=int(parts[2]),
                 process_id=int(parts[3]))
  try:
    jax.distributed.initialize(heartbeat_timeout_seconds=_HEARTBEAT_TIMEOUT_S, **given)
  except (RuntimeError, ValueError) as e:
    raise ValueError(f"hosts={spec!r}: {str(e).splitlines()[0]}") from e


def is_first() -> bool:
  """Tells whether this process writes the files of the run."""
  return jax.process_index() == 0


def gather(value: Any) -> list:
  """Returns the values of all processes, in their order. Values are JSON; floats are exact."""
  if jax.process_count() == 1: return [value]
  text = np.frombuffer(json.dumps(value).encode(), np.uint8)
  longest = int(np.max(multihost_utils.process_allgather(np.int32(len(text)))))
  width = 1 << max(longest - 1, 1).bit_length()  # Powers of 2: each shape is compiled.
  rows = multihost_utils.process_allgather(
      np.pad(text, (0, width - len(text)), constant_values=ord(" ")))
  return [json.loads(row.tobytes()) for row in rows]


def share_work(fn: Callable[[Sequence[int]], list], n: int) -> list:
  """Computes fn(indices) -> list for range(n), each process for a part of the indices.

  The results of fn must be JSON-serialisable. Every process gets all of them, in order.
  """
  count, results = jax.process_count(), [None] * n
  for i, part in enumerate(gather(fn(range(jax.process_index(), n, count)))):
    results[i::count] = part
  return results


def fetch(tree: Any) -> Any:
  """Copies arrays, also those sharded over processes, to numpy arrays in every process."""
  if jax.process_count() == 1: return jax.device_get(tree)
  return jax.tree.map(
      lambda x: multihost_utils.process_allgather(x, tiled=True)
      if isinstance(x, jax.Array) and not x.is_fully_addressable else np.asarray(x), tree)


def put(tree: Any, sharding_of: Callable | None = None, *, copies: bool = False) -> Any:
  """Puts arrays on devices; numpy arrays must be complete in every process.

  Args:
    sharding_of: (path, x) -> sharding of the array; None replicates all arrays.
    copies: the result shares no memory with `tree`.
  """
  if jax.process_count() == 1:
    return jax.device_put(tree, sharding_of and jax.tree.map_with_path(sharding_of, tree),
                          may_alias=False if copies else None)
  # Compiled functions treat host arrays as replicated.
  return tree if sharding_of is None else jax.tree.map_with_path(
      lambda path, x: _put_array(x, sharding_of(path, x), copies), tree)


def _put_array(x, sharding, copies):
  if isinstance(x, jax.core.Tracer) or (isinstance(x, jax.Array) and not x.is_fully_addressable):
    return jax.device_put(x, sharding, may_alias=False if copies else None)
  x = np.asarray(x)
  return jax.make_array_from_callback(
      x.shape, sharding, lambda index: np.array(x[index]) if copies else x[index])
