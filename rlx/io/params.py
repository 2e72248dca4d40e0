"""Models and parameter trees in orbax's files, read and written slice by slice.

A model of rlx is a directory: config.json as in a Hugging Face directory, the
tokenizer's files, and params/, the stacked tree as orbax restores it. orbax itself
saves whole arrays, and those of 80 layers are larger than many a host.
"""
import dataclasses
import json
import math
import pathlib

import numpy as np

from rlx.io import hf as hf_io
from rlx.io import shards
from rlx.io import strict_json
from rlx.io import tables

_FILE = 2**20, 2**25  # Bytes, about, of the files of params/, at least and at most.


class Leaf:
  """An array on disk: what is indexed is read, in the dtype asked for."""

  def __init__(self, array, dtype=None):
    self._array, self._rows = array, array.chunk_layout.read_chunk.shape[:1]
    self._start, self._block = None, None
    self.shape, self.dtype = array.shape, np.dtype(dtype or array.dtype.numpy_dtype)

  def __getitem__(self, index):
    if isinstance(index, tuple) and index and all(isinstance(i, int) for i in index):
      if self._rows > (1,) or len(index) > 1: return self._place(index)
    return _said(self._array[index].read().result).astype(self.dtype, copy=False)

  def __array__(self, dtype=None, copy=None):
    return self[()].astype(dtype or self.dtype, copy=False)

  def _place(self, index):
    """One of several places in a file or layer: read once, kept until the last is asked for."""
    rows, = self._rows
    start = index[0] // rows * rows
    if self._start != start: self._start, self._block = start, self[start:start + rows]
    x = self._block[(index[0] - start, *index[1:])]
    if all(i == n - 1 for i, n in zip(index, self.shape)): self._start, self._block = None, None
    return x


def leaves(folder, dtype=None, prefix=""):
  """{path: Leaf} of a folder that orbax or `write` wrote.

  Args:
    dtype: of what is read; None: of the files.
    prefix: of the paths that are wanted; it is left out.
  Raises:
    ValueError: it is none, or lacks a file.
  """
  file, out = folder / "_METADATA", {}
  said = strict_json.read(file)
  try:
    for entry in said["tree_metadata"].values():
      path = ".".join(str(k["key"]) for k in entry["key_metadata"])
      if entry["value_metadata"]["value_type"] not in ("jax.Array", "np.ndarray"): continue
      if not path.startswith(prefix): continue
      place = dict(driver="file", path=f"{folder.absolute()}/")
      out[path.removeprefix(prefix)] = Leaf(_open(dict(
          driver="zarr3" if said.get("use_zarr3") else "zarr",
          kvstore=dict(driver="ocdbt", base=place, path=f"{path}/") if said["use_ocdbt"]
          else place | dict(path=f"{place['path']}{path}/"),
          # Where parts of zeros are written too, one that is missing is no zeros.
          fill_missing_data_reads=not said.get("store_array_data_equal_to_fill_value")),
          open=True), dtype)
  except (KeyError, TypeError, AttributeError):
    raise ValueError(f"{file}: this is no metadata of orbax.") from None
  return out


def write(folder, leaves_, shapes, dtype):
  """Writes a folder that `leaves` and orbax read; one layer of one leaf is in memory.

  Args:
    leaves_: {path: what is indexed as tables.Leaf}.
    shapes: {path: shape}; what is missing of a vocabulary is filled as in `hf.save`.
  Raises:
    ValueError: a value is beyond the range of `dtype`.
  """
  folder.mkdir(parents=True)
  tree, dtype = {}, np.dtype(dtype)
  is_stacked = lambda path: "L" in path.rpartition("_")[2]
  # Of a file's bytes there are copies on their way to the disk: small beside the largest layer.
  largest = max(math.prod(shape[is_stacked(path):]) for path, shape in shapes.items())
  size = int(np.clip(largest * dtype.itemsize // 64, *_FILE)) // dtype.itemsize
  for path, shape in shapes.items():
    leaf = leaves_[path]
    array = _open({
        "driver": "zarr", "dtype": dtype.name, "store_data_equal_to_fill_value": True,
        "kvstore": {"driver": "file", "path": f"{folder.absolute()}/{path}/"},
        "metadata": {"shape": shape, "compressor": None, "chunks": _chunks(
            shape, is_stacked(path), size)},
        "context": {"data_copy_concurrency": {"limit": 1}, "file_io_concurrency": {"limit": 1}}},
        create=True)
    for index in [(i,) for i in range(shape[0])] if is_stacked(path) else [()]:
      x = np.asarray(leaf[index])
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
  (folder / "_METADATA").write_text(json.dumps(dict(
      tree_metadata=tree, use_ocdbt=False, use_zarr3=False, custom_metadata=None,
      store_array_data_equal_to_fill_value=True)))


def _copy(array, x, dtype, name):
  """array[:len(x)] = x, file by file: written at once they are all copied first."""
  rows = array.chunk_layout.write_chunk.shape[0]
  for start in range(0, len(x), rows):
    part = shards.cast(x[start:start + rows], dtype, name)
    box = (slice(start, start + len(part)), *(slice(0, n) for n in part.shape[1:]))
    array[box] = part


def _chunks(shape, is_stacked, most):
  """The part of an array that is a file: of one layer, and of `most` numbers or a row."""
  first, (rows, *rest) = ([1], shape[1:]) if is_stacked else ([], shape)
  files = -(-rows * math.prod(rest) // most)  # Of equal size: the last one is filled up.
  return [*first, -(-rows // files), *rest]


def _open(spec, **mode):
  import tensorstore
  return _said(tensorstore.open(spec, **mode).result)


def _said(call):
  """call(), and what tensorstore says of a file in one line."""
  try:
    return call()
  except ValueError as e:
    raise ValueError(str(e).splitlines()[0][:400]) from None


def load(path, dtype="float32", put=lambda path, leaf: np.asarray(leaf)):
  """(DecoderConfig, params) of a model of rlx.

  Args:
    put: (path, leaf) -> what becomes of a parameter. Only what is indexed is read:
      `jax.make_array_from_callback(leaf.shape, sharding, leaf.__getitem__)` reads each
      device's part, and of several processes each reads its own.
  Raises:
    ValueError: config.json and params/ are not of one model, or damaged.
  """
  config, said = hf_io.config_of(path, dtype)
  found = leaves(pathlib.Path(path) / "params", dtype)
  check(found, config, said, path)
  return config, tables.nest({path: put(path, leaf) for path, leaf in found.items()})


def stored(path):
  """(DecoderConfig, config.json, {path: Leaf}) of a model of rlx. Raises as `load`."""
  config, said = hf_io.config_of(path)
  found = leaves(pathlib.Path(path) / "params")
  check(found, config, said, path)
  return dataclasses.replace(
      config, param_dtype=next(iter(found.values())).dtype.name), said, found


def save(path, config, params, *, hf):
  """Writes a model of rlx but for its tokenizer; Args as `hf.save`."""
  path.mkdir(parents=True, exist_ok=True)
  said = hf_io.hf_of(config, hf)
  write(path / "params", tables.flatten(params), tables.paths(config), config.param_dtype)
  (path / "config.json").write_text(json.dumps(said, indent=2) + "\n")


def check(found, config, said, source):
  """Refuses leaves that are not the decoder's, naming one."""
  has, wanted = {path: tuple(x.shape) for path, x in found.items()}, tables.paths(config)
  for path in sorted(has.keys() | wanted.keys()):
    shape, needed = has.get(path, "none"), wanted.get(path, "none")
    if shape != needed:
      raise ValueError(f"{source}: {path} has shape {shape}; the model's config.json makes "
                       f"it {needed}.")
