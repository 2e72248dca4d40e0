"""Several processes, one program: how they find each other and come to agree.

Every process runs the same loop over the same host data. What differs is which rows
lie on its devices and which completions it verifies. What one process sees alone (a
verdict, a signal) decides nothing before all have it.
"""
import json
import re

import jax
from jax.experimental import multihost_utils
import numpy as np

_SILENCE_S = 60  # Of a process, until the others end with a message.


def start(spec):
  """Joins the processes of a run. Before anything else touches a device.

  Args:
    spec: "auto", where the cluster says who is who (TPU pods, SLURM, Open MPI);
      "ADDRESS:PORT,COUNT,INDEX", the address being the first process's.
  Raises:
    ValueError: spec is neither, or the others do not come.
  """
  given = {}
  if spec != "auto":
    if not (found := re.fullmatch(r"([^\s,]+:\d{1,5}),(\d{1,6}),(\d{1,6})", spec)):
      raise ValueError(f"hosts={spec!r:.200}: auto or ADDRESS:PORT,COUNT,INDEX.")
    given = dict(coordinator_address=found[1], num_processes=int(found[2]),
                 process_id=int(found[3]))
  try:
    jax.distributed.initialize(heartbeat_timeout_seconds=_SILENCE_S, **given)
  except (RuntimeError, ValueError) as e:
    raise ValueError(f"hosts={spec!r}: {str(e).splitlines()[0]}") from e


def is_first():
  """Does this process write the files that a run has once?"""
  return jax.process_index() == 0


def gather(value):
  """The values of all processes, in their order. JSON-able; floats keep their bits."""
  if jax.process_count() == 1: return [value]
  text = np.frombuffer(json.dumps(value).encode(), np.uint8)
  longest = int(np.max(multihost_utils.process_allgather(np.int32(len(text)))))
  width = 1 << max(longest - 1, 1).bit_length()  # Few shapes: each is a program.
  rows = multihost_utils.process_allgather(
      np.pad(text, (0, width - len(text)), constant_values=ord(" ")))
  return [json.loads(row.tobytes()) for row in rows]


def shared(fn, n):
  """What fn(indices) -> list gives for range(n), each process doing its share.

  fn's results are JSON-able. Every process gets all of them, in order.
  """
  count, found = jax.process_count(), [None] * n
  for i, part in enumerate(gather(fn(range(jax.process_index(), n, count)))):
    found[i::count] = part
  return found


def any_of(flag):
  """True if `flag` is in any process."""
  return any(gather(bool(flag)))


def fetch(tree):
  """Arrays, wherever their parts lie, as numpy arrays in every process."""
  if jax.process_count() == 1: return jax.device_get(tree)
  return jax.tree.map(
      lambda x: multihost_utils.process_allgather(x, tiled=True)
      if isinstance(x, jax.Array) and not x.is_fully_addressable else np.asarray(x), tree)


def put(tree, sharding_of=None, *, copies=False):
  """Numpy arrays, which every process has all of, and arrays to their devices.

  Args:
    sharding_of: (path, x) -> where it lies; None: everywhere the same.
    copies: the result shares no memory with `tree`.
  """
  if jax.process_count() == 1:
    return jax.device_put(tree, sharding_of and jax.tree.map_with_path(sharding_of, tree),
                          may_alias=False if copies else None)
  # A program takes what lies on the host as the same everywhere.
  return tree if sharding_of is None else jax.tree.map_with_path(
      lambda path, x: _spread(x, sharding_of(path, x), copies), tree)


def _spread(x, where, copies):
  if isinstance(x, jax.core.Tracer) or (
      isinstance(x, jax.Array) and not x.is_fully_addressable):
    return jax.device_put(x, where, may_alias=False if copies else None)
  x = np.asarray(x)
  return jax.make_array_from_callback(
      x.shape, where, lambda index: np.array(x[index]) if copies else x[index])
