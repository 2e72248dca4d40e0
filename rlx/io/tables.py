"""Tensors of a checkpoint <-> our parameter tree, by the table of names of a model family.

A table maps {name in the checkpoint: (our path, layout)}, or to several such pairs whose rows are
concatenated in the tensor; see `models/families/_names.py` and `phi3.py`. `{L}` and `{E}` in a name
stand for each layer and expert. Entries for parameters that a config does not have, such as
biases, are ignored.
"""
from collections.abc import Callable, Iterable, Mapping
import dataclasses
import functools
import itertools
import math
import re
from typing import Any, NamedTuple, Protocol

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np

from rlx.models import transformer, value

_BLOCK = 2**18  # Numbers that are checked at once.
_AXES = ("vocab_size", "d_model", "n_heads", "n_kv_heads", "head_dim", "d_ff")  # of DecoderConfig


class Readable(Protocol):
  """An array of which only the part that is indexed is read."""
  @property
  def shape(self) -> tuple[int, ...]: ...
  def __getitem__(self, index: Any, /) -> np.ndarray: ...


@dataclasses.dataclass(frozen=True)
class Leaf:
  """A parameter stored in the tensors of a checkpoint. `leaf[index]` reads one layer of it;
  `np.asarray(leaf, dtype)` reads all, one layer at a time.

  Attributes:
    shape: of all layers.
    parts: {index: () -> array}; indices are (layer,), (layer, expert), or () without layers.
  """
  shape: tuple[int, ...]
  parts: dict[tuple[int, ...], Callable[[], np.ndarray]]

  def __getitem__(self, index: tuple[int, ...]) -> np.ndarray:
    if index in self.parts: return self.parts[index]()
    return np.stack([self[(*index, i)] for i in range(self.shape[len(index)])])

  def __array__(self, dtype=None, copy=None):
    x = np.empty(self.shape, dtype or np.float32)
    for index in self.parts: x[index] = self[index]
    return x


class Tensor(NamedTuple):
  """A tensor to write, computed on demand."""
  shape: tuple[int, ...]
  parts: Callable[[], Iterable[np.ndarray]]  # their rows are concatenated


def load(config: transformer.DecoderConfig, leaves_: Mapping[str, Readable],
         dtype: str) -> tuple[transformer.DecoderConfig, dict]:
  """(DecoderConfig, params): reads one leaf after the other as host arrays of a dtype.

  They stay on the host: a model may be larger than one device, and `learner/sharding.py`
  decides where its parts are placed.
  """
  config = dataclasses.replace(config, dtype=dtype, param_dtype=dtype)
  return config, traverse_util.unflatten_dict(
      {path: np.asarray(leaf, dtype) for path, leaf in leaves_.items()}, sep=".")


def leaves(tensors: Mapping[str, Readable], table: dict, config: transformer.DecoderConfig,
           source: object) -> dict[str, Leaf]:
  """{path: Leaf} of the parameters of `config`, read from the tensors of a checkpoint.

  Args:
    tensors: {name: tensor}, with `shape` and `tensor[rows]`.
    table: of the family.
    config: DecoderConfig.
    source: the checkpoint, for messages.
  Raises:
    ValueError: tensors are missing, superfluous or of another shape.
  """
  n_experts = config.n_experts if any("{E}" in pattern for pattern in table) else 0
  # The names of so many layers alone would fill the memory.
  if config.n_layers * max(n_experts, 1) > len(tensors):
    raise ValueError(f"{source}: {len(tensors)} tensors for {config.n_layers} layers"
                     + f" of {n_experts} experts" * bool(n_experts) + ".")
  count = sum(math.prod(x.shape) for x in tensors.values())
  for field in _AXES:  # Each is an axis of a tensor; tracing makes tables of that length.
    if (size := getattr(config, field)) > count:
      raise ValueError(f"{source}: {count} numbers in all tensors; {field}={size} cannot be.")
  wanted = _find_wanted(table, config)
  if missing := sorted(set(wanted) - set(tensors)):
    raise ValueError(f"{source}: {len(missing)} tensors are missing: {_list_few(missing)}.")
  _check_shapes(tensors, wanted, config, source)
  extra = sorted(set(tensors) - set(wanted))
  if config.tied_head and len(extra) == 1:
    extra = _without_copy_of_embedding(extra, wanted, tensors, table)
  if extra:
    raise ValueError(f"{source}: {len(extra)} tensors are not part of the model: "
                     f"{_list_few(extra)}.")
  readers, shapes = _make_readers(tensors, wanted, config), paths(config)
  return {path: Leaf(shape, readers[path]) for path, shape in shapes.items()}


def read_some(tensors: Mapping[str, Readable], table: dict, config: transformer.DecoderConfig,
              source: object) -> dict[str, dict[tuple[int, ...], Callable[[], np.ndarray]]]:
  """{path: parts of a Leaf} that some tensors of a checkpoint hold; Args and Raises as `leaves`."""
  wanted = _find_wanted(table, config)
  if unknown := sorted(set(tensors) - set(wanted)):
    raise ValueError(f"{source}: {_list_few(unknown)}: the model has no such matrix.")
  wanted = {name: wanted[name] for name in tensors}
  _check_shapes(tensors, wanted, config, source)
  return _make_readers(tensors, wanted, config)


def _find_wanted(table, config):
  """{name: ((our path, layout), ...), index} of the tensors of a config."""
  shapes = paths(config)
  return {name: (pairs(parts), index) for pattern, parts in table.items()
          if pairs(parts)[0][0] in shapes for name, index in _name_tensors(pattern, config)}


def _check_shapes(tensors, wanted, config, source):
  sizes = _sizes(config)
  for name, (parts, _) in wanted.items():
    expected = _shape([_foreign_shape(layout, sizes) for _, layout in parts])
    if tensors[name].shape != expected:
      raise ValueError(f"{source}: {name} has shape {tensors[name].shape}; the config makes it "
                       f"{expected}.")


def _make_readers(tensors, wanted, config):
  """{path: {index: () -> array}} of the tensors that are wanted."""
  sizes, readers = _sizes(config), {}
  for name, (parts, index) in wanted.items():
    start = 0
    for path, layout in parts:
      end = start + _foreign_shape(layout, sizes)[0]
      readers.setdefault(path, {})[index] = functools.partial(
          _rows, tensors[name], name, slice(start, end), layout, _letters(path, index), sizes)
      start = end
  return readers


def write(params: dict, table: dict, config: transformer.DecoderConfig) -> dict[str, Tensor]:
  """The inverse: {name in the checkpoint: Tensor}.

  Args:
    params: tree of arrays, or {path: leaf} that is indexed as a Leaf.
    table, config: see `leaves`.
  Raises:
    ValueError: the table has no tensor for a parameter.
  """
  flat, out = flatten(params), {}
  if unknown := sorted(set(flat) - {path for parts in table.values() for path, _ in pairs(parts)}):
    raise ValueError(f"No tensor of this family holds {_list_few(unknown)}.")
  for pattern, parts in table.items():
    parts = pairs(parts)
    if parts[0][0] not in flat: continue
    shape = _shape([_foreign_shape(layout, _own_sizes(path, flat[path].shape))
                    for path, layout in parts])
    for name, index in _name_tensors(pattern, config):
      out[name] = Tensor(shape, functools.partial(
          _parts, [(flat[path], layout, path) for path, layout in parts], index))
  return out


def _name_tensors(pattern, config):
  """(name, index) of the tensors that a pattern stands for; the index is that in a parameter."""
  ranges = [range(n) for letter, n in (("{L}", config.n_layers), ("{E}", config.n_experts))
            if letter in pattern]
  for index in itertools.product(*ranges): yield pattern.format(**dict(zip("LE", index))), index


def _shape(shapes):
  """The shape of tensors whose rows are concatenated."""
  return sum(shape[0] for shape in shapes), *shapes[0][1:]


def pairs(value: tuple) -> tuple:
  """A table's value as a tuple of (our path, layout)."""
  return (value,) if isinstance(value[0], str) else value


def _without_copy_of_embedding(extra, wanted, tensors, table):
  """Some checkpoints of tied models store the head too, which is allowed if it is the embedding."""
  if table.get(extra[0], ("",))[0] != "head.w_DV": return extra
  embedding = next(n for n, (parts, _) in wanted.items() if parts[0][0] == "embed.w_VD")
  a, b, step = tensors[extra[0]], tensors[embedding], 4096
  is_copy = a.shape == b.shape and all(np.array_equal(a[i:i + step], b[i:i + step])
                                       for i in range(0, a.shape[0], step))
  return [] if is_copy else extra


def _list_few(names):
  return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def _sizes(c):
  return dict(V=c.vocab_size, D=c.d_model, L=c.n_layers, N=c.n_heads,
              K=c.n_kv_heads, H=c.head_dim, F=c.d_ff, E=c.n_experts, c=2, h=c.head_dim // 2,
              **{"1": c.outputs})


@functools.lru_cache(maxsize=8)
def paths(config: transformer.DecoderConfig) -> dict[str, tuple[int, ...]]:
  """{path: shape} of the parameters of a DecoderConfig."""
  return {path: x.shape for path, x in flatten(jax.eval_shape(lambda: draw(config))).items()}


def draw(config: transformer.DecoderConfig) -> dict:
  """Random parameters of a DecoderConfig, with the head that it has."""
  params = transformer.init(config, jax.random.key(0))
  return value.init(config, params) if config.has_head else params


def _own_sizes(path, shape_):
  """{letter: size} of the axes of a parameter."""
  sizes = dict(zip(path.rpartition("_")[2], shape_))
  return sizes | {"c": 2, "h": sizes["H"] // 2} if "H" in sizes else sizes


def _letters(path, index):
  """The axes of a parameter without those of `index`: layers come first, then experts."""
  return path.rpartition("_")[2][len(index):]


def _foreign_shape(layout, sizes):
  groups = re.findall(r"\((\w+)\)|(\w)", layout)
  return tuple(math.prod(sizes[a] for a in group or single) for group, single in groups)


def _split(layout, ours):
  """(axes of the tensor, our axes), without groups."""
  theirs = re.sub(r"[()]", "", layout)
  return theirs, ours.replace("H", "ch") if "h" in theirs else ours


def check_finite(x: np.ndarray, source: object, name: str,
                 parts: Callable[[], Iterable[np.ndarray]]) -> None:
  """Refuses a tensor that has NaN or infinite numbers, with which nothing can be computed.

  Args:
    parts: () -> the arrays of the whole tensor that x is a part of, in which they are counted.
  Raises:
    ValueError: one line with the source, the name and how many.
  """
  if all(part.max() < limit for part, limit in _exponents(x)): return
  count = size = 0
  for whole in parts():
    count += sum(int((part == limit).sum()) for part, limit in _exponents(whole))
    size += whole.size
  raise ValueError(f"{source}: {name} has {count} NaN or infinite numbers among {size}; get or "
                   "convert the model again, or take an earlier checkpoint of it.")


def _exponents(x):
  """(the bits of the exponents, those of infinity and NaN) of blocks that fit into a cache.

  At 9 GB/s on one core for all dtypes; np.isfinite of bfloat16 is at 1.2 GB/s.
  """
  if not np.issubdtype(x.dtype, np.floating) and x.dtype != jnp.bfloat16: return
  kind = np.dtype(f"u{x.dtype.itemsize}")
  limit, bits = np.array(np.inf, x.dtype).view(kind), x.reshape(-1).view(kind)
  for start in range(0, x.size, _BLOCK): yield bits[start:start + _BLOCK] & limit, limit


def _rows(tensor, name, rows, layout, ours, sizes):
  theirs, mine = _split(layout, ours)
  x = tensor[rows]
  check_finite(x, tensor.file, name, lambda: [tensor[:]])
  x = x.reshape([sizes[a] for a in theirs])
  x = x.transpose([theirs.index(a) for a in mine])
  return x.reshape([sizes[a] for a in ours])


def _parts(parts, index):
  for leaf, layout, path in parts:
    sizes = _own_sizes(path, leaf.shape)
    theirs, mine = _split(layout, _letters(path, index))
    x = np.asarray(leaf[index]).reshape([sizes[a] for a in mine])
    x = x.transpose([mine.index(a) for a in theirs])
    yield x.reshape(_foreign_shape(layout, sizes))


def flatten(params: dict) -> dict[str, Any]:
  """{path: array} of a tree."""
  return {name(path): x for path, x in jax.tree.leaves_with_path(params)}


def name(path: tuple) -> str:
  """The name of a leaf of a tree: the keys of its path, joined by dots."""
  return jax.tree_util.keystr(path, simple=True, separator=".")
