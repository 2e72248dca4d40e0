"""The programs of a step, lowered and compiled for devices that are not here.

`lower` needs nothing but the mesh's shape. `compile_` partitions for as many devices
of a platform: CPU devices that XLA is told to make, or the compiler for TPUs, which
runs without one. What a compiled program takes and what it sends is read off it.
"""
import collections
import math
import re
import time

import numpy as np

_BYTES = dict(pred=1, s8=1, u8=1, bf16=2, f16=2, s16=2, u16=2, f32=4, s32=4, u32=4,
              f64=8, s64=8, u64=8)
# Of an operation's bytes, what a device of a group of g receives if it goes in a ring.
_RECEIVED = {"all-gather": lambda g: (g - 1) / g, "all-reduce": lambda g: 2 * (g - 1) / g,
             "reduce-scatter": lambda g: g - 1, "all-to-all": lambda g: (g - 1) / g,
             "collective-permute": lambda g: 1}
_COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_COLLECTIVE = re.compile(rf"^\s*(?:ROOT )?%?[\w.\-]+ = (.*?) ({'|'.join(_RECEIVED)})(-start)?\(")
_CALLED = re.compile(r"(?:to_apply|calls|body|true_computation|false_computation)=%?([\w.\-]+)")
_TIMES = re.compile(r'known_trip_count"?:\{"n":"(\d+)"')


def received(text, mesh):
  """{axes: bytes} that a device receives from others in a run of a compiled program.

    all-gather, all-to-all: out (g - 1) / g;  reduce-scatter: out (g - 1);
    all-reduce: 2 out (g - 1) / g;  permute: out

  for groups of g devices. Bodies of loops count as often as they run.

  Args:
    text: the program after partitioning, `Compiled.as_text()`.
    mesh: {axis: size}, devices numbered in this order; groups are told by the axes
      along which their devices differ, joined by "+".
  Raises:
    ValueError: a loop does not say how often it runs and has collectives in it.
  """
  own, called, here, entry = collections.defaultdict(collections.Counter), {}, None, None
  for line in text.splitlines():
    if match := _COMPUTATION.match(line):
      here, called[match[1]] = match[1], []
      if line.startswith("ENTRY"): entry = here
    elif match := _COLLECTIVE.match(line):
      members = _group(line, mesh)
      axes = "+".join(a for a, places in zip(mesh, np.unravel_index(
          members, tuple(mesh.values()))) if len(set(places)) > 1)
      nbytes = [math.prod(map(int, filter(None, dims.split(",")))) * _BYTES[kind]
                for kind, dims in re.findall(r"(\w+)\[([\d,]*)\]", match[1])]
      # A start names its argument and its result.
      total = max(nbytes) if match[3] else sum(nbytes)
      if axes: own[here][axes] += total * _RECEIVED[match[2]](len(members))
    elif here is not None:
      times = _TIMES.search(line)
      is_loop = " while(" in line
      names = _CALLED.findall(line)
      if match := re.search(r"branch_computations=\{([^}]*)\}", line):
        names += re.findall(r"%?([\w.\-]+)", match[1])
      called[here] += [(name, int(times[1]) if times else None if is_loop else 1) for name in names]

  def total(name):
    sums = collections.Counter(own[name])
    for other, times in called.get(name, ()):
      inside = total(other)
      if inside and times is None:
        raise ValueError(f"{other}: a loop without a count sends {dict(inside)}.")
      for axes, n in inside.items(): sums[axes] += times * n
    return sums

  return dict(total(entry))


def _group(line, mesh):
  """Returns the devices of the first group of a collective."""
  if match := re.search(
      r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\((.*?)\))? \{([^}]*)\}", line):
    sizes = {name: int(n) for name, n in re.findall(r"'([^']+)'=(\d+)", match[1])}
    names = re.findall(r"'([^']+)'", match[3])
    if match[3].replace(" ", "") != ",".join(f"'{name}'" for name in names):
      raise ValueError(f"Cannot read the devices of: {line}")
    devices = np.arange(math.prod(sizes.values()))
    if match[2]:
      devices = _iota(*re.fullmatch(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", match[2]).groups())
    return devices.reshape(tuple(sizes.values()))[
        tuple(slice(None) if name in names else 0 for name in sizes)].ravel()
  if match := re.search(
      r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", line):
    out, dims, order = match.groups()
    return _iota(dims, order).reshape(tuple(map(int, out.split(","))))[0]
  if match := re.search(r"(?:replica_groups|source_target_pairs)=\{\{([\d,]+)\}", line):
    return np.array(list(map(int, match[1].split(","))))
  return np.arange(math.prod(mesh.values()))


def _iota(dims, order):
  """Returns devices 0, 1, ... in the order of XLA's notation [4,2]T(1,0)."""
  dims, order = (x and tuple(map(int, x.split(","))) for x in (dims, order))
  devices = np.arange(math.prod(dims)).reshape(dims)
  return devices.transpose(order or range(len(dims)))


def timed(call):
  """Returns (the result of a call, its seconds)."""
  start = time.perf_counter()
  result = call()
  return result, time.perf_counter() - start
