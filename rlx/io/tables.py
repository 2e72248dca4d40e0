"""A family's name table applied: tensors of a checkpoint <-> our parameter tree.

A table maps {foreign name: (our path, layout)}, or to several such pairs whose rows the
tensor holds one below the other; see `models/families/_names.py` and `phi3.py`. A `{L}` or
`{E}` of the name stands for each layer and expert. Names of what a config does not have,
such as biases, do not count.
"""
import dataclasses
import functools
import itertools
import math
import re
from typing import Callable, NamedTuple

import jax
import numpy as np

from rlx.models import transformer

_AXES = ("vocab_size", "d_model", "n_heads", "n_kv_heads", "head_dim", "d_ff")  # of DecoderConfig


@dataclasses.dataclass(frozen=True)
class Leaf:
  """A parameter that lies in the tensors of a checkpoint: leaf[index] reads one layer of it.

  Attributes:
    shape: of all layers.
    places: {index: how what is there is read}; indices are (layer,), (layer, expert), or
      () without layers.
  """
  shape: tuple
  places: dict

  def __getitem__(self, index):
    if index in self.places: return self.places[index]()
    return np.stack([self[(*index, i)] for i in range(self.shape[len(index)])])


class Tensor(NamedTuple):
  """A tensor to write, made when it is asked for."""
  shape: tuple
  parts: Callable  # () -> arrays, whose rows follow one another


def read(found, get, table, config, source, put=lambda path, x: x):
  """Builds the parameter tree of `config` from a checkpoint's tensors.

  Args:
    found: {name: shape} of the tensors that the checkpoint has.
    get: name -> numpy array, or what gives one for a slice of rows.
    table: the family's.
    config: DecoderConfig; param_dtype is the dtype of the result.
    source: the checkpoint, for messages.
    put: (path, array) -> what becomes of a parameter, called as soon as it is whole:
      one that sends it to devices leaves the host with one at a time.
  Returns:
    nested dict of numpy arrays, or of what `put` returns. Without it they stay on the
    host: a model may be larger than one device, and `learner/sharding.py` decides
    what goes where.
  Raises:
    ValueError: tensors are missing, left over or of another shape; before any is read.
  """
  out = {}
  for path, leaf in leaves(found, get, table, config, source).items():
    x = np.empty(leaf.shape, config.param_dtype)
    for index in leaf.places: x[index] = leaf[index]
    out[path] = put(path, x)
  return nest(out)


def leaves(found, get, table, config, source):
  """{path: Leaf} of a checkpoint's tensors. Args and Raises as `read`."""
  n_experts = config.n_experts if any("{E}" in pattern for pattern in table) else 0
  if config.n_layers * max(n_experts, 1) > len(found):  # Names alone would fill the memory.
    raise ValueError(f"{source}: {len(found)} tensors for {config.n_layers} layers"
                     + f" of {n_experts} experts" * bool(n_experts) + ".")
  held = sum(map(math.prod, found.values()))
  for field in _AXES:  # Each is an axis of a tensor; tracing makes tables as long as they say.
    if (size := getattr(config, field)) > held:
      raise ValueError(f"{source}: {held} numbers in all tensors; {field}={size} cannot be.")
  sizes, shapes = _sizes(config), paths(config)
  wanted = {name: (pairs(parts), place) for pattern, parts in table.items()
            if pairs(parts)[0][0] in shapes for name, place in _each(pattern, config)}
  if missing := sorted(set(wanted) - set(found)):
    raise ValueError(f"{source}: {len(missing)} tensors are missing: {_few(missing)}.")
  for name, (parts, _) in wanted.items():
    rows, *others = zip(*(_foreign_shape(layout, sizes) for _, layout in parts))
    expected = (sum(rows), *(n[0] for n in others))
    if found[name] != expected:
      raise ValueError(f"{source}: {name} has shape {found[name]}; the config makes it "
                       f"{expected}.")
  extra = sorted(set(found) - set(wanted))
  if config.tied_head and len(extra) == 1:
    extra = _without_copy_of_embedding(extra, wanted, get, table)
  if extra:
    raise ValueError(f"{source}: {len(extra)} tensors are not part of the model: "
                     f"{_few(extra)}.")
  places = {path: {} for path in shapes}
  for name, (parts, place) in wanted.items():
    start = 0
    for path, layout in parts:
      end = start + _foreign_shape(layout, sizes)[0]
      places[path][place] = functools.partial(
          _rows, get, name, slice(start, end), layout, _letters(path, place), sizes)
      start = end
  return {path: Leaf(shapes[path], found) for path, found in places.items()}


def write(params, table, config):
  """The inverse: {foreign name: Tensor}; none is made before its parts are asked for.

  Args:
    params: tree of arrays, or {path: what is indexed as a Leaf}.
    table, config: see `read`.
  Raises:
    ValueError: a parameter is in no tensor of the table.
  """
  flat, out = flatten(params), {}
  if unknown := sorted(set(flat) - {path for parts in table.values()
                                    for path, _ in pairs(parts)}):
    raise ValueError(f"No tensor of this family holds {_few(unknown)}.")
  for pattern, parts in table.items():
    parts = pairs(parts)
    if parts[0][0] not in flat: continue
    rows, *others = zip(*(_foreign_shape(layout, _own_sizes(path, flat[path].shape))
                          for path, layout in parts))
    for name, place in _each(pattern, config):
      out[name] = Tensor((sum(rows), *(n[0] for n in others)), functools.partial(
          _parts, [(flat[path], layout, path) for path, layout in parts], place))
  return out


def _each(pattern, config):
  """(name, place): the tensors that a pattern stands for, and where they lie in a parameter."""
  ranges = [range(n) for letter, n in (("{L}", config.n_layers), ("{E}", config.n_experts))
            if letter in pattern]
  for place in itertools.product(*ranges): yield pattern.format(**dict(zip("LE", place))), place


def pairs(value):
  """A table's value as a tuple of (our path, layout)."""
  return (value,) if isinstance(value[0], str) else value


def _without_copy_of_embedding(extra, wanted, get, table):
  """Some files of tied models store the head too; fine if it is the embedding."""
  heads = {name for name, parts in table.items() if parts[0] == "head.w_DV"}
  embedding = next(n for n, (parts, _) in wanted.items() if parts[0][0] == "embed.w_VD")
  if extra[0] not in heads: return extra
  a, b, rows = get(extra[0]), get(embedding), 4096
  return [] if a.shape == b.shape and all(
      np.array_equal(a[i:i + rows], b[i:i + rows]) for i in range(0, a.shape[0], rows)) else extra


def _few(names):
  return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def _sizes(c):
  return dict(V=c.vocab_size, D=c.d_model, L=c.n_layers, N=c.n_heads,
              K=c.n_kv_heads, H=c.head_dim, F=c.d_ff, E=c.n_experts, c=2, h=c.head_dim // 2)


@functools.lru_cache(maxsize=8)
def paths(config):
  """{path: shape} of the parameters that `config` has."""
  tree = jax.eval_shape(lambda: transformer.init(config, jax.random.key(0)))  # Of no device.
  return {path: x.shape for path, x in flatten(tree).items()}


def _own_sizes(path, shape_):
  """The sizes that a parameter itself says its axes have."""
  sizes = dict(zip(path.rpartition("_")[2], shape_))
  return sizes | {"c": 2, "h": sizes["H"] // 2} if "H" in sizes else sizes


def _letters(path, place):
  """Axes of a parameter that are left at `place`: layers come first, then experts."""
  return path.rpartition("_")[2][len(place):]


def _foreign_shape(layout, sizes):
  groups = re.findall(r"\((\w+)\)|(\w)", layout)
  return tuple(math.prod(sizes[a] for a in group or single)
               for group, single in groups)


def _split(layout, ours):
  """(axes of the foreign tensor, our axes), both one by one."""
  theirs = re.sub(r"[()]", "", layout)
  return theirs, ours.replace("H", "ch") if "h" in theirs else ours


def _rows(get, name, rows, layout, ours, sizes):
  return _to_ours(get(name)[rows], layout, ours, sizes)


def _parts(parts, index):
  for leaf, layout, path in parts:
    yield _to_foreign(np.asarray(leaf[index]), layout, _letters(path, index),
                      _own_sizes(path, leaf.shape))


def _to_ours(x, layout, ours, sizes):
  theirs, mine = _split(layout, ours)
  x = x.reshape([sizes[a] for a in theirs])
  x = x.transpose([theirs.index(a) for a in mine])
  return x.reshape([sizes[a] for a in ours])


def _to_foreign(x, layout, ours, sizes):
  theirs, mine = _split(layout, ours)
  x = x.reshape([sizes[a] for a in mine])
  x = x.transpose([mine.index(a) for a in theirs])
  return x.reshape(_foreign_shape(layout, sizes))


def flatten(params):
  """{path: array} of a tree."""
  return {jax.tree_util.keystr(path, simple=True, separator="."): x
          for path, x in jax.tree.leaves_with_path(params)}


def nest(flat):
  """The inverse of `flatten`."""
  out = {}
  for path, x in flat.items():
    *parents, leaf = path.split(".")
    node = out
    for parent in parents:
      node = node.setdefault(parent, {})
    node[leaf] = x
  return out
