"""Metadata of a .gguf file and the places of its tensors, checked against the file's length.

Counts and lengths are compared with the remaining bytes before anything is allocated. Versions 2
and 3, little-endian, without arrays of arrays. gguf.GGUFReader takes 15 times as long for a
vocabulary and 200 bytes of memory for each byte of a damaged file.
Source: docs/gguf.md of ggml.
"""
import dataclasses
import itertools
import math
import mmap
import pathlib
from typing import Any, TYPE_CHECKING

import numpy as np

from rlx.io import strict_json

if TYPE_CHECKING: import gguf

_SCALARS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), map(np.dtype, (
    "u1", "i1", "<u2", "<i2", "<u4", "<i4", "<f4", "?", "<u8", "<i8", "<f8"))))
_STRING, _ARRAY = 8, 9
_BLOCK = 2**20  # Bytes that are dequantised at once.
_VALUES = 10**7  # In all arrays; Gemma's tokens, scores, types and merges are 1.3 million.
_U32, _U64 = _SCALARS[4], _SCALARS[10]


@dataclasses.dataclass(frozen=True)
class Tensor:
  """A tensor of a file. Indexing reads and dequantises rows."""
  file: pathlib.Path
  kind: "gguf.GGMLQuantizationType"
  shape: tuple[int, ...]  # rows first, as in numpy
  start: int       # first byte in the file
  width: int       # bytes of its last axis
  added: float = 0.0  # to the stored values

  def __getitem__(self, rows: slice) -> np.ndarray:
    import gguf
    is_flat = len(self.shape) == 1  # Read as one row.
    start, stop, _ = (0, 1, 1) if is_flat else rows.indices(self.shape[0])
    lead, size = self.shape[1:-1], math.prod(self.shape[1:-1]) * self.width
    out = np.empty((stop - start, *lead, self.shape[-1]), np.float32)
    step = max(_BLOCK // size, 1)
    for row in range(0, stop - start, step):
      n = min(step, stop - start - row)
      x = np.fromfile(self.file, np.uint8, n * size, offset=self.start + (start + row) * size)
      with np.errstate(invalid="ignore"):  # `tables.check_finite` refuses it.
        out[row:row + n] = gguf.dequantize(x.reshape(n, *lead, self.width), self.kind)
    if self.added: out += np.float32(self.added)
    return out[0][rows] if is_flat else out


def read(path: pathlib.Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
  """({key: value}, {name: Tensor}) of a file.

  Raises:
    ValueError: this is no GGUF file, it is truncated, or a value is impossible; names the key or
      the tensor.
  """
  size = path.stat().st_size
  if size < 24: raise ValueError(f"{path}: {size} bytes are no GGUF file.")
  with path.open("rb") as f: data = memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))
  if data[:4] != b"GGUF":
    raise ValueError(f"{path}: starts with {bytes(data[:4])!r}, not with b'GGUF'.")
  if (version := int.from_bytes(data[4:8], "little")) not in (2, 3):
    raise ValueError(f"{path}: version {version}; 2 and 3, little-endian, are read.")
  take = _Taker(path, data, 8)
  n_tensors, n_keys = take.number(_U64), take.number(_U64)
  meta, infos = {}, {}
  for i in range(n_keys):
    take.what = f"key {i} of {n_keys}"
    key = take.what = take.text(is_name=True)
    if key in meta: raise ValueError(f"{path}: {key} stands twice.")
    meta[key] = take.value(take.number(_U32))
  for i in range(n_tensors):
    take.what = f"tensor {i} of {n_tensors}"
    name = take.what = take.text(is_name=True) or take.what
    if name in infos: raise ValueError(f"{path}: {name} stands twice.")
    n_axes = take.number(_U32)
    if not 1 <= n_axes <= 4:
      raise ValueError(f"{path}: {name} has {n_axes} axes; 1 to 4 are allowed.")
    infos[name] = ([take.number(_U64) for _ in range(n_axes)][::-1], take.number(_U32),
                   take.number(_U64))
  align = meta.get("general.alignment", 32)
  if type(align) is not int or not 0 < align < 2**16 or align & (align - 1):
    raise ValueError(f"{path}: general.alignment={align!r}; a power of 2 is needed.")
  return meta, _tensors(path, -(-take.at // align) * align, size, infos, align)


def _tensors(path, first, size, infos, align):
  import gguf
  tensors, ends, size = {}, [], max(size - first, 0)
  for name, (shape, kind, start) in infos.items():
    where = f"{path}: {name}"
    try:
      kind = gguf.GGMLQuantizationType(kind)
      block, n_bytes = gguf.GGML_QUANT_SIZES[kind]
      # All types but integers, float64, Q8_1, Q8_K and Q1_0 can be dequantised.
      gguf.dequantize(np.zeros((1, n_bytes), np.uint8), kind)
    except (ValueError, NotImplementedError):
      raise ValueError(f"{where} is of type {kind!r}, which is not read.") from None
    width, rest = divmod(shape[-1], block)
    if rest:
      raise ValueError(f"{where} has rows of {shape[-1]}; {kind.name} needs a multiple of {block}.")
    stored = (*shape[:-1], width * n_bytes)
    if start % align or start + math.prod(stored) > size:
      raise ValueError(f"{where} has {math.prod(stored)} bytes from byte {start} of the "
                       f"data; the file has {size}, and it starts at multiples of {align}.")
    ends.append((start, start + math.prod(stored), name))
    tensors[name] = Tensor(path, kind, tuple(shape), first + start, stored[-1])
  for (_, end, before), (start, _, name) in itertools.pairwise(sorted(ends)):
    if start < end:
      raise ValueError(f"{path}: {name} starts at byte {start} of the data, within {before}.")
  return tensors


class _Taker:
  """Reads values one after the other."""

  def __init__(self, path, data, at):
    self.path, self.data, self.at, self.what = path, data, at, "the header"
    self.left = _VALUES  # Each takes up to 100 bytes.

  def bytes(self, n):
    if n > (left := len(self.data) - self.at):
      raise ValueError(f"{self.path}: {self.what} takes {n} bytes, {left} are left; the "
                       "file is truncated or damaged.")
    self.at += n
    return self.data[self.at - n:self.at]

  def number(self, dtype):
    return np.frombuffer(self.bytes(dtype.itemsize), dtype)[0].item()

  def text(self, is_name=False):
    raw = bytes(self.bytes(self.number(_U64)))
    try:
      text = raw.decode("utf-8")
      if is_name: strict_json.check_name(text)
    except ValueError as e:
      raise ValueError(f"{self.path}: {self.what}: {e}.") from None
    return text

  def value(self, kind):
    if kind == _STRING: return self.text()
    if kind in _SCALARS: return self.number(_SCALARS[kind])
    if kind != _ARRAY:
      raise ValueError(f"{self.path}: {self.what} is of type {kind}, which is none.")
    kind, count = self.number(_U32), self.number(_U64)
    if kind not in (_STRING, *_SCALARS):
      raise ValueError(f"{self.path}: {self.what} is an array of type {kind}; of numbers "
                       "and texts they are read.")
    dtype = _SCALARS.get(kind, _U64)  # A text is at least its length.
    self.left -= min(count, (len(self.data) - self.at) // dtype.itemsize)
    if self.left < 0:
      raise ValueError(f"{self.path}: {self.what}: more than {_VALUES} values in arrays.")
    if kind == _STRING: return [self.text() for _ in range(count)]
    return np.frombuffer(self.bytes(count * dtype.itemsize), dtype).tolist()
