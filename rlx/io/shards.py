"""The tensors of a Hugging Face directory: *.safetensors, one file or shards with an index.

The safetensors package checks the headers. The data is read and written here, because only the
rows that are indexed should be in memory, and only one tensor while a file is written.
"""
import dataclasses
import json
import math
import pathlib

import ml_dtypes
import numpy as np
import safetensors

from rlx.io import strict_json, tables, terminal

_INDEX = "model.safetensors.index.json"
_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": ml_dtypes.bfloat16}
_NAMES = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
_BLOCK = 2**22  # Bytes that are cast and written at once.
_HEADER = strict_json.LARGEST  # Bytes; 100,000 tensors need 12 million.
_OTHERS = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")  # Never opened.


@dataclasses.dataclass(frozen=True)
class Stored:
  """A tensor of a file. Indexing reads rows; nothing stays mapped."""
  file: pathlib.Path
  dtype: type
  shape: tuple[int, ...]
  start: int  # first byte in the file

  def __getitem__(self, rows: slice) -> np.ndarray:
    start, stop, _ = rows.indices(self.shape[0])
    width, dtype = math.prod(self.shape[1:]), np.dtype(self.dtype)
    return np.fromfile(
        self.file, dtype, (stop - start) * width,
        offset=self.start + start * width * dtype.itemsize).reshape(-1, *self.shape[1:])


def tensors(path: pathlib.Path) -> tuple[pathlib.Path, dict[str, Stored]]:
  """(file that lists the tensors, {name: Stored}) of a directory.

  Raises:
    ValueError: a file is missing, damaged or outside of the folder, a dtype is not a float, or the
      index does not agree with the shards.
  """
  index, present = path / _INDEX, {p.name for p in path.glob("*.safetensors") if p.is_file()}
  if not index.is_file():
    if "model.safetensors" not in present:
      others = sorted(p.name for p in path.iterdir() if p.suffix in _OTHERS)
      raise ValueError(f"{path}: no model.safetensors and no {_INDEX}; only "
                       "safetensors are read" + f", not {others}" * bool(others) + ".")
    return path / "model.safetensors", read_file(path / "model.safetensors")
  file_of = strict_json.read(index).get("weight_map")
  if not isinstance(file_of, dict):
    raise ValueError(f"{index}: weight_map={file_of!r:.60}; an object is needed.")
  for name, file in file_of.items():
    if not isinstance(file, str) or file not in present:  # Also for a path.
      raise ValueError(f"{index}: {name} is in {file!r:.200}; {path} has {sorted(present)}.")
  files = {file: read_file(path / file) for file in sorted(set(file_of.values()))}
  stored = {(name, file) for file, tensors_ in files.items() for name in tensors_}
  for name, file in sorted(stored ^ set(file_of.items())):
    where = "lists it there, but it is not" if name not in files[file] else "does not list it there"
    raise ValueError(f"{path / file}: {name}: {_INDEX} {where}.")
  return index, {name: files[file][name] for name, file in file_of.items()}


def read_file(file: pathlib.Path) -> dict[str, Stored]:
  """{name: Stored} of one file; Raises as `tensors`."""
  with file.open("rb") as f: length = int.from_bytes(f.read(8), "little")
  if length > _HEADER:
    raise ValueError(f"{file}: a header of {length} bytes; at most {_HEADER} are read.")
  out, start = {}, 8 + length
  try:
    with safetensors.safe_open(file, "numpy") as f:
      for name in f.offset_keys():  # In the order of the data, which has no gaps.
        strict_json.check_name(name)
        entry = f.get_slice(name)
        dtype, shape = entry.get_dtype(), tuple(entry.get_shape())
        if dtype not in _DTYPES:
          raise ValueError(f"{name}: dtype={dtype!r}; {', '.join(_DTYPES)} are read")
        out[name] = Stored(file, _DTYPES[dtype], shape, start)
        start += math.prod(shape) * np.dtype(_DTYPES[dtype]).itemsize
  except (safetensors.SafetensorError, ValueError) as e:
    raise ValueError(f"{file}: {terminal.line(str(e)):.300}.") from None
  return out


def write(path: pathlib.Path, tensors_: dict[str, tables.Tensor], dtype: str,
          shard_bytes: int) -> None:
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
  import huggingface_hub
  plan = huggingface_hub.split_state_dict_into_shards_factory(
      tensors_, filename_pattern="model{suffix}.safetensors", max_shard_size=shard_bytes,
      get_storage_size=lambda x: math.prod(x.shape) * np.dtype(dtype).itemsize)
  (path / _INDEX).unlink(missing_ok=True)  # Of an earlier model in this folder.
  for file, names in plan.filename_to_tensors.items():
    write_file(path / file, {name: tensors_[name] for name in names}, dtype)
  if plan.is_sharded:
    strict_json.write(path / _INDEX, dict(
        metadata=plan.metadata, weight_map=plan.tensor_to_filename))


def write_file(file: pathlib.Path, tensors_: dict[str, tables.Tensor], dtype_name: str) -> None:
  """One file; see `write`."""
  header: dict[str, dict] = {"__metadata__": {"format": "pt"}}
  end, dtype = 0, np.dtype(dtype_name)
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
          f.write(cast(x[start:start + rows], dtype, name).view(np.uint8).data)


def cast(x: np.ndarray, dtype: np.dtype, name: str) -> np.ndarray:
  """x as `dtype`, contiguous; ValueError where it becomes infinite."""
  with np.errstate(over="ignore"): y = np.ascontiguousarray(x, dtype)
  if dtype == np.float16 and not np.array_equal(np.isfinite(x), np.isfinite(y)):
    raise ValueError(f"{name} has values beyond the range of {dtype}.")
  return y
