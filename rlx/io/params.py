"""Models of rlx: parameter trees in the format of orbax, read and written slice by slice.

A model of rlx is a directory: config.json as in a Hugging Face directory, the files of the
tokenizer, and params/, the stacked tree as orbax restores it. orbax itself writes whole arrays,
and an array of 80 layers may not fit in the memory of a host.
"""
from collections.abc import Mapping
import dataclasses
import math
import pathlib
from typing import Any

import numpy as np

from rlx.io import hf as hf_io, shards, strict_json, tables
from rlx.models import transformer

_FILE = 2**20, 2**25  # Smallest and largest size of the files of params/, approximately, in bytes.


class Leaf:
  """An array on disk, of which only the part that is indexed is read."""

  def __init__(self, array: Any, source: object = "", name: str = ""):
    self._source, self._name = source, name  # For messages.
    self._array, self._rows = array, (*array.chunk_layout.read_chunk.shape, 1)[0]
    self._start: int | None = None
    self._block: np.ndarray | None = None
    self.shape, self.dtype = array.shape, np.dtype(array.dtype.numpy_dtype)

  def __getitem__(self, index: Any) -> np.ndarray:
    if not (isinstance(index, tuple) and index and all(isinstance(i, int) for i in index)):
      x = self._read(index)
      tables.check_finite(x, self._source, self._name, lambda: (
          self._read(slice(i, i + self._rows)) for i in range(0, (*self.shape, 1)[0], self._rows)))
      return x
    # A file has several layers, or a layer several items: it is read once and kept until the last.
    start = index[0] // self._rows * self._rows
    if self._start != start:
      self._block = None  # The memory is free before the next block is read.
      self._start, self._block = start, self[start:start + self._rows]
    assert self._block is not None
    x = self._block[(index[0] - start, *index[1:])]
    if all(i == n - 1 for i, n in zip(index, self.shape)): self._start, self._block = None, None
    return x

  def _read(self, index: Any) -> np.ndarray:
    return _one_line(self._array[index].read().result)

  def __array__(self, dtype=None, copy=None):
    return self[()].astype(dtype or self.dtype, copy=False)


def leaves(folder: pathlib.Path, prefix: str = "") -> dict[str, Leaf]:
  """{path: Leaf} of a folder that orbax or `write` wrote.

  Args:
    prefix: selects the paths that start with it, and is removed from them.
  Raises:
    ValueError: the folder is not of this format, or lacks a file.
  """
  file, out = folder / "_METADATA", {}
  metadata = strict_json.read(file)
  try:
    for entry in metadata["tree_metadata"].values():
      path = ".".join(str(k["key"]) for k in entry["key_metadata"])
      if entry["value_metadata"]["value_type"] not in ("jax.Array", "np.ndarray"): continue
      if not path.startswith(prefix): continue
      place = dict(driver="file", path=f"{folder.absolute()}/")
      out[path.removeprefix(prefix)] = Leaf(_open(dict(
          driver="zarr3" if metadata.get("use_zarr3") else "zarr",
          kvstore=dict(driver="ocdbt", base=place, path=f"{path}/") if metadata["use_ocdbt"]
          else place | dict(path=f"{place['path']}{path}/"),
          # If chunks of zeros are written too, a missing chunk does not mean zeros.
          fill_missing_data_reads=not metadata.get("store_array_data_equal_to_fill_value")),
          open=True), folder, path)
  except (KeyError, TypeError, AttributeError):
    raise ValueError(f"{file}: this is no metadata of orbax.") from None
  return out


def write(folder: pathlib.Path, leaves_: Mapping[str, tables.Readable],
          shapes: Mapping[str, tuple[int, ...]], dtype_name: str) -> None:
  """Writes a folder that `leaves` and orbax read. Streams one layer of one leaf at a time.

  Args:
    leaves_: {path: leaf} that is indexed as tables.Leaf.
    shapes: {path: shape}; a larger vocabulary is filled up as in `hf.save`.
  Raises:
    ValueError: a value is beyond the range of the dtype.
  """
  folder.mkdir(parents=True)
  tree, dtype = {}, np.dtype(dtype_name)
  is_stacked = lambda path: "L" in path.rpartition("_")[2]
  # tensorstore copies the bytes of a file while it writes: files are small next to a layer.
  largest = max(math.prod(shape[is_stacked(path):]) for path, shape in shapes.items())
  size = int(np.clip(largest * dtype.itemsize // 64, *_FILE)) // dtype.itemsize
  for path, shape in shapes.items():
    array = _open({
        "driver": "zarr", "dtype": dtype.name, "store_data_equal_to_fill_value": True,
        "kvstore": {"driver": "file", "path": f"{folder.absolute()}/{path}/"},
        "metadata": {"shape": shape, "compressor": None, "chunks": _chunks(
            shape, is_stacked(path), size)},
        "context": {"data_copy_concurrency": {"limit": 1}, "file_io_concurrency": {"limit": 1}}},
        create=True)
    for index in [(i,) for i in range(shape[0])] if is_stacked(path) else [()]:
      x = np.asarray(leaves_[path][index])
      _copy(array[index], x, dtype, path)
      for axis in [a for a, n in enumerate(x.shape) if n < array[index].shape[a]]:
        before = (slice(None),) * axis
        array[index][(*before, slice(x.shape[axis], None))] = x.mean(
            axis=axis, keepdims=True, dtype=np.float64).astype(dtype)
    keys = path.split(".")
    tree[str(tuple(keys))] = dict(
        key_metadata=[dict(key=k, key_type=2) for k in keys],
        value_metadata=dict(value_type="jax.Array", skip_deserialize=False,
                            write_shape=list(shape)))
  strict_json.write(folder / "_METADATA", dict(
      tree_metadata=tree, use_ocdbt=False, use_zarr3=False, custom_metadata=None,
      store_array_data_equal_to_fill_value=True))


def _copy(array, x, dtype, name):
  """array[:len(x)] = x, file by file: a single assignment would copy all files first."""
  rows = array.chunk_layout.write_chunk.shape[0]
  for start in range(0, len(x), rows):
    part = shards.cast(x[start:start + rows], dtype, name)
    box = (slice(start, start + len(part)), *(slice(0, n) for n in part.shape[1:]))
    array[box] = part


def _chunks(shape, is_stacked, most):
  """The shape of the part of an array in a file: of one layer, and of `most` numbers or a row."""
  first, (rows, *rest) = ([1], shape[1:]) if is_stacked else ([], shape)
  files = -(-rows * math.prod(rest) // most)  # Of equal size.
  return [*first, -(-rows // files), *rest]


def _open(spec, **mode):
  import tensorstore
  return _one_line(tensorstore.open(spec, **mode).result)


def _one_line(call):
  """call(), with the first line of an error of tensorstore."""
  try:
    return call()
  except ValueError as e:
    raise ValueError(str(e).splitlines()[0][:400]) from None


def open_model(path: str | pathlib.Path) -> tuple[transformer.DecoderConfig, dict, dict[str, Leaf]]:
  """(DecoderConfig, config.json, {path: Leaf}) of a model of rlx.

  Raises:
    ValueError: config.json and params/ do not belong together, or are damaged.
  """
  config, hf = hf_io.config_of(path)
  leaves_ = leaves(pathlib.Path(path) / "params")
  check(leaves_, config, path)
  dtype = next(iter(leaves_.values())).dtype
  return dataclasses.replace(config, param_dtype=dtype.name), hf, leaves_


def save(path: pathlib.Path, config: transformer.DecoderConfig, params: dict, *,
         hf: dict | None) -> None:
  """Writes a model of rlx without its tokenizer; Args as `hf.save`."""
  path.mkdir(parents=True, exist_ok=True)
  hf = hf_io.hf_of(config, hf)
  write(path / "params", tables.flatten(params), tables.paths(config), config.param_dtype)
  strict_json.write(path / "config.json", hf)


def check(leaves_: Mapping[str, tables.Readable], config: transformer.DecoderConfig,
          source: object) -> None:
  """Raises ValueError, naming a leaf, if the leaves are not those of the decoder."""
  shapes, wanted = {path: tuple(x.shape) for path, x in leaves_.items()}, tables.paths(config)
  for path in sorted(shapes.keys() | wanted.keys()):
    if (shape := shapes.get(path, "none")) != (needed := wanted.get(path, "none")):
      raise ValueError(f"{source}: {path} has shape {shape}; the model's config.json makes "
                       f"it {needed}.")
