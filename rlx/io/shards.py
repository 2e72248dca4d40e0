"""The tensors of a Hugging Face directory: *.safetensors, one file or shards with an index.

A file is 8 bytes with the length of a header, the header, which is JSON
{name: {dtype, shape, data_offsets}}, and the data, without holes. It is read here
and not by the safetensors package so that an error names the tensor.
"""
import itertools
import math
import mmap

import ml_dtypes
import numpy as np

from rlx.io import strict_json

_INDEX = "model.safetensors.index.json"
_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16,
           "BF16": ml_dtypes.bfloat16}
_HEADER = 100_000_000  # Bytes; the limit of the safetensors package too.
_OTHERS = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")  # Not opened.


def tensors(path):
  """(file that lists them, {name: array}) of a directory; arrays are read when used.

  Raises:
    ValueError: a file is missing, damaged or not of this folder, its dtypes are no
      floats, or the index does not say what the shards have.
  """
  index, present = path / _INDEX, {p.name for p in path.glob("*.safetensors")
                                   if p.is_file()}
  if not index.is_file():
    if "model.safetensors" not in present:
      others = sorted(p.name for p in path.iterdir() if p.suffix in _OTHERS)
      raise ValueError(f"{path}: no model.safetensors and no {_INDEX}; only "
                       "safetensors are read" + f", not {others}" * bool(others) + ".")
    return path / "model.safetensors", _read(path / "model.safetensors")
  place = strict_json.read(index).get("weight_map")
  if not isinstance(place, dict):
    raise ValueError(f"{index}: weight_map={place!r:.60}; an object is needed.")
  found, files = {}, {}
  for name, file in place.items():
    if not isinstance(file, str) or file not in present:  # Also if it is no plain name.
      raise ValueError(f"{index}: {name} is in {file!r:.200}; {path} has {sorted(present)}.")
    if file not in files: files[file] = _read(path / file)
    if name not in files[file]:
      raise ValueError(f"{path / file}: {name} is missing; {_INDEX} says it is here.")
    found[name] = files[file][name]
  for file, held in files.items():
    for name in held:
      if place.get(name) != file:
        raise ValueError(f"{path / file}: {name} is here; {_INDEX} says "
                         f"{place.get(name, 'nothing')!r}.")
  return index, found


def _read(file):
  """{name: array} of one file."""
  size = file.stat().st_size
  with file.open("rb") as f:
    length = int.from_bytes(f.read(8), "little")
    if size < 8 or length > min(size - 8, _HEADER):
      raise ValueError(f"{file}: {size} bytes and a header of {length}; it is truncated "
                       f"or no safetensors (headers: at most {_HEADER}).")
    header = strict_json.parse(f.read(length), f"{file}: header")
    data = memoryview(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))[8 + length:]
  header.pop("__metadata__", None)
  spans = {name: _span(f"{file}: {name}", entry, len(data))
           for name, entry in header.items()}
  ends = sorted((start, start + count * np.dtype(dtype).itemsize, name)
                for name, (dtype, count, _, start) in spans.items())
  for (_, end, before), (start, _, name) in itertools.pairwise(
      [(0, 0, "the header"), *ends, (len(data), len(data), "the end")]):
    if start != end:
      raise ValueError(f"{file}: {name} starts at byte {start} of the data, {before} "
                       f"ends at {end}; they must meet.")
  return {name: np.frombuffer(data, dtype, count, start).reshape(shape)
          for name, (dtype, count, shape, start) in spans.items()}


def _span(where, entry, size):
  """(dtype, count, shape, start) of a header's entry, checked against `size` bytes of data."""
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
