"""What a compiled program does, read from its text: operations, memory traffic, communication.

`cost_analysis` counts the body of a loop once and says nothing about communication; XLA for GPUs
has no such analysis. Here everything counts as often as it runs.
"""
import collections
import dataclasses
import functools
import math
import re
from typing import Any

import numpy as np

_BYTES = dict(pred=1, s4=0.5, u4=0.5, s8=1, u8=1, f8e4m3fn=1, f8e5m2=1, bf16=2, f16=2, s16=2,
              u16=2, f32=4, s32=4, u32=4, f64=8, s64=8, u64=8, c64=8)
# Of an operation's bytes, what a device of a group of g receives if it goes in a ring.
_RECEIVED = {"all-gather": lambda g: (g - 1) / g, "all-reduce": lambda g: 2 * (g - 1) / g,
             "reduce-scatter": lambda g: g - 1, "all-to-all": lambda g: (g - 1) / g,
             "collective-permute": lambda g: 1}
# They move nothing: names of parts, or the end of a transfer that its start counts.
_FREE = {"parameter", "get-tuple-element", "tuple", "bitcast", "constant", "after-all", "iota",
         "partition-id", "replica-id", "opt-barrier", "add-dependency", "get-dimension-size"}
_SLICES = {"dynamic-slice", "slice", "gather"}
_SAME = {"bitcast", "reshape", "copy", "convert"}  # Their users tell what is read.
# Matrix products of flash attention kernels, of 2 B N S S H operations each, half of them masked.
_KERNELS = (("splash_mha_fwd", 2), ("splash_mha_dq", 3), ("splash_mha_dkv", 4),
            (r"__cudnn\$fmha\w*Backward", 5), (r"__cudnn\$fmha", 2))
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{$")
_OPERATION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\((.*)$")
_ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\](\{[^}]*\})?")


@dataclasses.dataclass(frozen=True)
class _Array:
  dtype: str
  shape: tuple
  is_on_chip: bool  # XLA for TPUs gives small buffers another memory space than HBM.

  @property
  def nbytes(self):
    return math.prod(self.shape) * _BYTES.get(self.dtype, 0)

  @property
  def traffic(self):
    return 0 if self.is_on_chip else self.nbytes


@dataclasses.dataclass
class _Operation:
  name: str
  kind: str
  results: list     # of _Array
  operands: list    # names
  text: str         # attributes
  is_root: bool


@dataclasses.dataclass
class Work:
  """What a run of a program, or of a part of it, takes on one device."""
  flops: float = 0.0     # of matrix products; a multiply-add counts as two
  traffic: float = 0.0   # bytes of device memory that its operations read and write
  received: collections.Counter = dataclasses.field(default_factory=collections.Counter)
  by_source: collections.Counter = dataclasses.field(default_factory=collections.Counter)

  def add(self, other: "Work", times: float = 1) -> None:
    self.flops += times * other.flops
    self.traffic += times * other.traffic
    pairs: Any = ((self.received, other.received), (self.by_source, other.by_source))
    for mine, more in pairs:
      for key, n in more.items(): mine[key] += times * n


def work(text: str, mesh: dict[str, int], longest: int | None = None) -> Work:
  """The work of one device in a run of a compiled program.

    all-gather, all-to-all: out (g - 1) / g;  reduce-scatter: out (g - 1);
    all-reduce: 2 out (g - 1) / g;  permute: out

  are the bytes received in groups of g devices. `received` has them by the mesh axes along which
  the devices of a group differ, joined by "+". Traffic is that of operands and results of each
  operation that is not inside a fusion; of a slice, only the slice; on TPUs without buffers that
  stay on the chip. Of a conditional the branch with most traffic counts. `by_source` has the
  traffic by (source line, kind of operation).

  Args:
    text: the program after partitioning, `Compiled.as_text()`.
    mesh: {axis: size}, devices numbered in this order.
    longest: how often a loop runs that ends by data, such as a chunk of decode steps.
  Raises:
    ValueError: a loop does not say how often it runs, and `longest` is None.
  """
  program = _Program(text, mesh, longest)
  return program.work(program.entry)


def _axes(op, mesh):
  """The mesh axes along which the devices of a collective's group differ, joined by "+"."""
  places = np.unravel_index(_group(op.text, mesh), tuple(mesh.values()))
  return "+".join(axis for axis, at in zip(mesh, places) if len(set(at.tolist())) > 1)


class _Program:

  def __init__(self, text, mesh, longest):
    self.mesh, self.longest = mesh, longest
    self.computations, self.entry = _parse(text)
    self.sources = _sources(text)
    self.types = {name: {op.name: op for op in ops} for name, ops in self.computations.items()}

  @functools.cache
  def work(self, name):
    """The Work of a computation that is not fused."""
    total, channels = Work(), {}
    for op in self.computations[name]:
      callee = lambda attribute, op=op: re.search(rf"{attribute}=%?([\w.\-]+)", op.text)
      if op.kind == "while":
        total.add(self.work(callee("body")[1]), self._times(op, callee("condition")[1]))
      elif op.kind == "conditional":
        branches = re.search(r"branch_computations=\{([^}]*)\}", op.text)
        names = (re.findall(r"%?([\w.\-]+)", branches[1]) if branches else
                 [callee("true_computation")[1], callee("false_computation")[1]])
        total.add(max(map(self.work, names), key=lambda work: work.traffic))
      elif op.kind == "call":
        total.add(self.work(callee("to_apply")[1]))
      else:
        for scope, inner in self._inside(name, op):
          total.flops += self._flops(scope, inner)
          self._receive(inner, channels)
        n = self._traffic(name, op)
        total.traffic += n
        if n: total.by_source[self._source(name, op), op.kind] += n
    for axes, n in channels.values(): total.received[axes] += n
    return total

  def _inside(self, name, op):
    """(computation, operation) of an operation, or of all those inside a fusion."""
    called = _find_called(op)
    if called is None: return [(name, op)]
    return [pair for x in self.computations[called] for pair in self._inside(called, x)]

  def _source(self, name, op, depth=4):
    """The source line of an operation; if it has none, of what reads or made its operand."""
    for _, x in [(name, op), *self._inside(name, op)]:
      if (match := re.search(r"stack_frame_id=(\d+)", x.text)) and int(match[1]) in self.sources:
        return self.sources[int(match[1])]
    if not depth: return "unknown"
    users = [x for x in self.computations[name] if op.name in x.operands]
    makers = [self.types[name][x] for x in op.operands if x in self.types[name]]
    return next((source for x in [*users, *makers] if x.kind not in ("while", "tuple")
                 and (source := self._source(name, x, depth - 1)) != "unknown"), "unknown")

  def _times(self, op, condition):
    """How often a loop runs: its known count, or the constant that its counter is compared with."""
    if match := re.search(r'known_trip_count"?:\{"n":"(\d+)"', op.text): return int(match[1])
    ops = self.types[condition]
    root = next(x for x in ops.values() if x.is_root)
    compared = [x for x in self.computations[condition] if x.kind == "compare"]
    limits = [int(match[1]) for x in compared if "direction=LT" in x.text for name in x.operands
              if name in ops and (match := re.match(r"(\d+)\)", ops[name].text))
              and ops[name].kind == "constant"]
    if len(limits) == 1 and root.kind == "compare": return limits[0]
    # A comparison alone may be fused.
    constants = [int(match[1]) for x in ops.values() if x.kind == "constant"
                 and (match := re.match(r"(\d+)\)", x.text))]
    if root.kind == "fusion" and len(constants) == 1 and len(ops) <= 4: return constants[0]
    if self.longest is None: raise ValueError(f"{op.name}: a loop without a count.")
    return self.longest

  def _receive(self, op, channels):
    """Adds what a collective receives to {channel: (axes, bytes)}.

    A collective that runs beside others is in several fusions, which share its channel.
    """
    kind, _, rest = op.kind.partition("-start")
    if kind not in _RECEIVED or rest: return
    axes, members = _axes(op, self.mesh), _group(op.text, self.mesh)
    nbytes = [x.nbytes for x in op.results]
    # A start names its argument and its result.
    total = max(nbytes) if op.kind.endswith("-start") else sum(nbytes)
    channel = re.search(r"channel_id=(\d+)", op.text)
    if axes: channels[channel[1] if channel else op.name] = (
        axes, total * _RECEIVED[kind](len(members)))

  def _traffic(self, name, op):
    """Bytes of device memory that an operation reads and writes."""
    if op.kind in _FREE or op.kind.endswith("-done"): return 0
    ops = self.types[name]
    operands = [ops[x].results for x in op.operands if x in ops]
    written = op.results
    if op.kind == "copy-start": return sum(x.traffic for x in op.results[:2])  # To and from.
    if op.kind == "slice-start":  # Of the first result, the second.
      return op.results[1].traffic + (op.results[1].nbytes if op.results[0].traffic else 0)
    if op.kind.endswith("-start"): written = op.results[1:]
    if (called := _find_called(op)) is not None:
      return (sum(self._read(called, i, x) for i, x in enumerate(operands))
              + self._count_written(called, written))
    sizes = [sum(x.traffic for x in operand) for operand in operands]
    # What a kernel changes in place it has as an operand, of which it writes little.
    in_place = re.search(r"output_to_operand_aliasing=\{(.*?)\)\}", op.text)
    places = set(re.findall(r"\{(\d+)\}: ", in_place[1])) if in_place else ()
    out = sum(x.traffic for i, x in enumerate(written) if str(i) not in places)
    if op.kind in _SLICES: return 2 * out
    if op.kind in ("dynamic-update-slice", "scatter"):
      part = sizes[1 if op.kind == "dynamic-update-slice" else 2]
      return 2 * part if out else 0
    return sum(sizes) + out

  def _read(self, name, index, arrays):
    """Bytes that a fused computation reads of its parameter `index`."""
    return min(sum(x.traffic for x in arrays), self._part(name, index))

  @functools.cache
  def _part(self, name, index):
    """Bytes of a parameter that its users in a fused computation read."""
    ops = self.computations[name]
    parameter = next((x for x in ops if x.kind == "parameter" and x.text.startswith(f"{index})")),
                     None)
    return 0 if parameter is None else self._count_used(name, parameter)

  def _count_used(self, name, op):
    users = [x for x in self.computations[name] if op.name in x.operands]
    whole = sum(x.nbytes for x in op.results)
    total = whole if op.is_root else 0
    for user in users:
      first = user.operands[0] == op.name
      if user.kind in _SLICES and first:
        total += sum(x.nbytes for x in user.results)
      elif user.kind in _SAME:
        total += self._count_used(name, user)
      elif user.kind == "fusion":
        total += sum(self._part(_find_called(user), i) for i, x in enumerate(user.operands)
                     if x == op.name)
      elif user.kind != "dynamic-update-slice" or not first:  # What is updated is not read.
        return whole
    return min(total, whole)

  def _count_written(self, name, results):
    """Bytes that a fused computation writes: of an update in place, only the update."""
    ops = self.types[name]
    root = next(x for x in self.computations[name] if x.is_root)
    roots = [ops[x] for x in root.operands] if root.kind == "tuple" else [root]
    if len(roots) != len(results): return sum(x.traffic for x in results)
    total = 0
    for x, out in zip(roots, results):
      while x.kind in _SAME and x.operands[0] in ops: x = ops[x.operands[0]]
      update = ops.get(x.operands[1]) if x.kind == "dynamic-update-slice" else None
      total += out.traffic if update is None else min(
          out.traffic, sum(y.nbytes for y in update.results))
    return total

  def _flops(self, name, op):
    """Operations of a matrix product, or of a kernel for attention; 0 of others."""
    ops = self.types[name]
    shape = lambda i: ops[op.operands[i]].results[0].shape
    if op.kind == "dot":
      contracted = re.search(r"lhs_contracting_dims=\{([\d,]*)\}", op.text)[1]
      return 2 * math.prod(op.results[0].shape) * math.prod(
          shape(0)[int(i)] for i in contracted.split(",") if i)
    if op.kind == "convolution": return _convolution(op, shape(0), shape(1))
    if op.kind == "custom-call":
      target = re.search(r'custom_call_target="([^"]+)"', op.text)[1]
      if target.startswith("__cublas$"): return self._gemm(op, shape)
      if "triton" in target and '"decode_attention"' in op.text:  # models/decode_kernel.py
        (w, k, a, h), x, t = shape(0), shape(2)[2], shape(4)[2]
        return 4 * w * k * (a - 2) * h * (x + t)
      for pattern, products in _KERNELS:
        if re.match(pattern, op.name if target == "tpu_custom_call" else target):
          arrays = [ops[x].results[0].shape for x in op.operands if x in ops]
          b, *two, h = next(x for x in arrays if len(x) == 4)
          s, n = max(two), min(two)
          return products * b * n * s * s * h
    return 0

  def _gemm(self, op, shape):
    contracted = re.search(r'"lhs_contracting_dimensions":\["?(\d+)', op.text)
    return 2 * math.prod(op.results[0].shape) * (shape(0)[int(contracted[1])] if contracted else 0)


def _find_called(op):
  """The computation of a fusion, or None."""
  match = re.search(r"calls=%?([\w.\-]+)", op.text)
  return match and match[1]


def _convolution(op, lhs, rhs):
  """Operations of a convolution, as which XLA for TPUs writes matrix products."""
  labels = re.search(r"dim_labels=(\w+)_(\w+)->(\w+)", op.text)
  window = re.search(r"window=\{([^}]*)\}", op.text)
  spatial = sorted(x for x in labels[1] if x.isdigit())
  attributes = dict(x.split("=") for x in window[1].split()) if window else {}
  pairs = 1
  for d, axis in enumerate(spatial):
    values = lambda key, default, d=d: (attributes[key].split("x")[d] if key in attributes
                                        else default)
    n, k = lhs[labels[1].index(axis)], rhs[labels[2].index(axis)]
    out = op.results[0].shape[labels[3].index(axis)]
    low = int(values("pad", "0_0").split("_")[0])
    stride, spread, spaced = (int(values(key, 1)) for key in ("stride", "rhs_dilate", "lhs_dilate"))
    at = (np.arange(out)[:, None] * stride + np.arange(k)[None] * spread - low)
    pairs *= int(np.sum((at >= 0) & (at < (n - 1) * spaced + 1) & (at % spaced == 0)))
  out_shape = op.results[0].shape
  return (2 * pairs * out_shape[labels[3].index("b")] * out_shape[labels[3].index("f")]
          * rhs[labels[2].index("i")])


def _parse(text):
  """({computation: operations}, name of the entry)."""
  computations, here, entry = {}, None, None
  for line in text.splitlines():
    if match := _COMPUTATION.match(line):
      here = computations[match[2]] = []
      if match[1]: entry = match[2]
    elif here is not None and (match := _OPERATION.match(line)):
      root, name, results, kind, rest = match.groups()
      here.append(_Operation(name, kind, [_array(*x) for x in _ARRAY.findall(results)],
                             re.findall(r"%([\w.\-]+)", rest.partition(")")[0]), rest, bool(root)))
    elif here:
      here[-1].text += line
  return computations, entry


def _array(dtype, dims, layout):
  space = re.search(r"S\((\d+)\)", layout)
  return _Array(dtype, tuple(int(n) for n in dims.split(",") if n), bool(space and space[1] != "5"))


def _sources(text):
  """{stack frame: "file:line"} for the innermost line of rlx."""
  tables: dict[str, Any] = collections.defaultdict(dict)
  name = None
  for line in text.splitlines():
    if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"): name = line
    elif name and (match := re.match(r"(\d+) (.*)$", line)): tables[name][int(match[1])] = match[2]
    elif line and name: break
  files = {i: x.strip('"') for i, x in tables["FileNames"].items()}
  field = lambda text, key: int(re.search(rf"{key}=(\d+)", text)[1])
  frames = tables["StackFrames"]

  @functools.cache
  def source(frame):
    location = tables["FileLocations"][field(frames[frame], "file_location_id")]
    file = files[field(location, "file_name_id")]
    if match := re.search(r"(?:.*/|^)(rlx/[\w/]+\.py)$", file):
      return f"{match[1]}:{field(location, 'line')}"
    # Frames are numbered from 1; their parents are given plus one.
    parent = field(frames[frame], "parent_frame_id") - 1
    return source(parent) if 0 < parent < frame else file.rpartition("/")[2]

  return {frame: source(frame) for frame in sorted(frames)}


def _group(text, mesh):
  """Returns the devices of the first group of a collective."""
  if match := re.search(
      r"replica_groups=mesh\[([^\]]*)\](?:, device_ids=\((.*?)\))? \{([^}]*)\}", text):
    sizes = {name: int(n) for name, n in re.findall(r"'([^']+)'=(\d+)", match[1])}
    names = re.findall(r"'([^']+)'", match[3])
    if match[3].replace(" ", "") != ",".join(f"'{name}'" for name in names):
      raise ValueError(f"Cannot read the devices of: {text}")
    devices = np.arange(math.prod(sizes.values()))
    if match[2]:
      devices = _iota(*re.fullmatch(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", match[2]).groups())
    return devices.reshape(tuple(sizes.values()))[
        tuple(slice(None) if name in names else 0 for name in sizes)].ravel()
  if match := re.search(r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?", text):
    out, dims, order = match.groups()
    return _iota(dims, order).reshape(tuple(map(int, out.split(","))))[0]
  if match := re.search(r"(?:replica_groups|source_target_pairs)=\{\{([\d,]+)\}", text):
    return np.array(list(map(int, match[1].split(","))))
  return np.arange(math.prod(mesh.values()))


def _iota(dims, order):
  """Returns devices 0, 1, ... in the order of XLA's notation [4,2]T(1,0)."""
  dims, order = (x and tuple(map(int, x.split(","))) for x in (dims, order))
  return np.arange(math.prod(dims)).reshape(dims).transpose(order or range(len(dims)))
