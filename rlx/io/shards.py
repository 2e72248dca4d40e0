"""The tensors of a Hugging Face directory: *.safetensors, one file or shards with an index.

A file is 8 bytes with the length of a header, the header, which is JSON
{name: {dtype, shape, data_offsets}}, and the data, without gaps. This module reads it instead of
the safetensors package so that errors name the tensor, and writes it so that only one tensor at a
time is in memory.
"""
import dataclasses
import itertools
import json
import math
import pathlib
from typing import Any

import ml_dtypes
import numpy as np

from rlx.io import strict_json

_INDEX = "model.safetensors.index.json"
_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16,
           "BF16": ml_dtypes.bfloat16}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_BLOCK = 2**22  # Bytes that are cast and written at once.
_HEADER = strict_json.LARGEST  # Bytes; 100,000 tensors need 12 million.
_OTHERS = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")  # Never opened.


@dataclasses.dataclass(frozen=True)
class Stored:
  """A tensor of a file. Indexing reads rows; nothing stays mapped."""
  file: pathlib.Path
  dtype: Any
  shape: tuple
  start: int  # first byte in the file

  def __getitem__(self, rows):
    start, stop, _ = rows.indices(self.shape[0])
    width, dtype = math.prod(self.shape[1:]), np.dtype(self.dtype)
    return np.fromfile(
        self.file, dtype, (stop - start) * width,
        offset=self.start + start * width * dtype.itemsize).reshape(-1, *self.shape[1:])


def tensors(path):
  """(file that lists the tensors, {name: Stored}) of a directory.

  Raises:
    ValueError: a file is missing, damaged or outside of the folder, a dtype is not a float, or the
      index does not agree with the shards.
  """
  index, present = path / _INDEX, {p.name for p in path.glob("*.safetensors")
                                   if p.is_file()}
  if not index.is_file():
    if "model.safetensors" not in present:
      others = sorted(p.name for p in path.iterdir() if p.suffix in _OTHERS)
      raise ValueError(f"{path}: no model.safetensors and no {_INDEX}; only "
                       "safetensors are read" + f", not {others}" * bool(others) + ".")
    return path / "model.safetensors", _read(path / "model.safetensors")
  file_of = strict_json.read(index).get("weight_map")
  if not isinstance(file_of, dict):
    raise ValueError(f"{index}: weight_map={file_of!r:.60}; an object is needed.")
  out, files = {}, {}
  for name, file in file_of.items():
    if not isinstance(file, str) or file not in present:  # Also for a path.
      raise ValueError(f"{index}: {name} is in {file!r:.200}; {path} has {sorted(present)}.")
    if file not in files: files[file] = _read(path / file)
    if name not in files[file]:
      raise ValueError(f"{path / file}: {name} is missing; {_INDEX} says it is here.")
    out[name] = files[file][name]
  for file, tensors_ in files.items():
    for name in tensors_:
      if file_of.get(name) != file:
        raise ValueError(f"{path / file}: {name} is here; {_INDEX} says "
                         f"{file_of.get(name, 'nothing')!r}.")
  return index, out


def _read(file):
  """{name: Stored} of one file."""
  size = file.stat().st_size
  with file.open("rb") as f:
    length = int.from_bytes(f.read(8), "little")
    if size < 8 or length > min(size - 8, _HEADER):
      raise ValueError(f"{file}: {size} bytes and a header of {length}; it is truncated "
                       f"or no safetensors (headers: at most {_HEADER}).")
    header = strict_json.parse(f.read(length), f"{file}: header")
  size -= 8 + length
  header.pop("__metadata__", None)
  spans = {name: _span(f"{file}: {name}", entry, size)
           for name, entry in header.items()}
  ends = sorted((start, start + count * np.dtype(dtype).itemsize, name)
                for name, (dtype, count, _, start) in spans.items())
  for (_, end, before), (start, _, name) in itertools.pairwise(
      [(0, 0, "the header"), *ends, (size, size, "the end")]):
    if start != end:
      raise ValueError(f"{file}: {name} starts at byte {start} of the data, {before} "
                       f"ends at {end}; they must meet.")
  return {name: Stored(file, dtype, shape, 8 + length + start)
          for name, (dtype, _, shape, start) in spans.items()}


def _span(where, entry, size):
  """(dtype, count, shape, start) of an entry of a header, checked against `size` bytes of data."""
  if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
    raise ValueError(f"{where}: {entry!r:.60}; dtype, shape and data_offsets are "
                     "needed.")
  name, shape, span = entry["dtype"], entry["shape"], entry["data_offsets"]
  if not isinstance(name, str) or name not in _DTYPES:
    raise ValueError(f"{where}: dtype={name!r:.60}; {', '.join(_DTYPES)} are read.")
  for key, numbers, lengths in (("shape", shape, range(5)), ("data_offsets", span, [2])):
    if (not isinstance(numbers, list) or len(numbers) not in lengths
        or not all(type(n) is int and 0 <= n < 2**63 for n in numbers)):
      raise ValueError(f"{where}: {key}={numbers!r:.60}; whole numbers are needed, "
                       f"{max(lengths)} at most.")
  count, (start, end) = math.prod(shape), span
  needed = count * np.dtype(_DTYPES[name]).itemsize
  if end > size or end - start != needed:
    raise ValueError(f"{where}: data_offsets={span}; {name} of shape {tuple(shape)} takes "
                     f"{needed} bytes, the file has {size} of data.")
  return _DTYPES[name], count, tuple(shape), start


def write(path, tensors_, dtype, shard_bytes):
  """Writes tensors: model.safetensors, or shards and after them their index.

  Args:
    path: a directory.
    tensors_: {name: tables.Tensor}, in the order of the files. Streams one tensor at a time and
      casts it block by block; the model need not fit in memory.
    dtype: of the files.
    shard_bytes: the largest size of a file's data; a larger tensor gets a file of its own.
  Raises:
    ValueError: a value is beyond the range of `dtype`.
  """
  size = lambda name: math.prod(tensors_[name].shape) * np.dtype(dtype).itemsize
  shards, left = [], 0
  for name in tensors_:
    if size(name) > left or not shards:
      shards.append([])
      left = shard_bytes
    shards[-1].append(name)
    left -= size(name)
  (path / _INDEX).unlink(missing_ok=True)  # Of an earlier model in this folder.
  if len(shards) == 1: return write_file(path / "model.safetensors", tensors_, dtype)
  file_of = {}
  for i, names in enumerate(shards):
    file = f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
    write_file(path / file, {name: tensors_[name] for name in names}, dtype)
    file_of |= dict.fromkeys(names, file)
  (path / _INDEX).write_text(json.dumps(
      dict(metadata=dict(total_size=sum(map(size, tensors_))), weight_map=file_of), indent=2))


def write_file(file, tensors_, dtype):
  """One file; see `write`."""
  header, end, dtype = {"__metadata__": {"format": "pt"}}, 0, np.dtype(dtype)
  for name, tensor in tensors_.items():
    start, end = end, end + math.prod(tensor.shape) * dtype.itemsize
    header[name] = dict(dtype=_NAMES[dtype], shape=tensor.shape, data_offsets=[start, end])
  text = json.dumps(header).encode()
  text += b" " * (-len(text) % 8)  # Aligns the data.
  with file.open("wb") as f:
    f.write(len(text).to_bytes(8, "little") + text)
    for name, tensor in tensors_.items():
      for x in tensor.parts():
        rows = max(_BLOCK // max(x[:1].nbytes, 1), 1)
        for start in range(0, len(x), rows):
          f.write(cast(x[start:start + rows], dtype, name).view(np.uint8))


def cast(x, dtype, name):
  """x as `dtype`, contiguous; ValueError where it becomes infinite."""
  with np.errstate(over="ignore"): y = np.ascontiguousarray(x, dtype)
  if dtype == np.float16 and not np.array_equal(np.isfinite(x), np.isfinite(y)):
    raise ValueError(f"{name} has values beyond the range of {dtype}.")
  return y
