"""A family's name table applied: tensors of a checkpoint <-> our parameter tree.

A table maps {foreign name: (our path, layout)}, or to several such pairs whose rows the
tensor holds one below the other; see `models/families/llama.py` and `phi3.py`. A `{L}` or
`{E}` of the name stands for each layer and expert. Names of what a config does not have,
such as biases, do not count.
"""
import functools
import itertools
import math
import re

import jax
import numpy as np

from rlx.models import transformer


def read(found, get, table, config, source):
  """Builds the parameter tree of `config` from a checkpoint's tensors.

  Args:
    found: {name: shape} of the tensors that the checkpoint has.
    get: name -> numpy array.
    table: the family's.
    config: DecoderConfig; param_dtype is the dtype of the result.
    source: the checkpoint, for messages.
  Returns:
    nested dict of numpy arrays. They stay on the host: a model may be larger
    than one device, and `learner/sharding.py` decides what goes where.
  Raises:
    ValueError: tensors are missing, left over or of another shape; before any is read.
  """
  if config.n_layers * max(config.n_experts, 1) > len(found):  # Names alone would fill the memory.
    raise ValueError(f"{source}: {len(found)} tensors for {config.n_layers} layers"
                     + f" of {config.n_experts} experts" * bool(config.n_experts) + ".")
  sizes, shapes = _sizes(config), paths(config)
  wanted = {name: (parts, place) for pattern, parts in table.items()
            if pairs(parts)[0][0] in shapes
            for name, parts, place in _each(pattern, pairs(parts), config)}
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
  out = {path: np.empty(size, config.param_dtype) for path, size in shapes.items()}
  for name, (parts, place) in wanted.items():
    foreign, start = np.asarray(get(name)), 0
    for path, layout in parts:
      end = start + _foreign_shape(layout, sizes)[0]
      out[path][place] = _to_ours(foreign[start:end], layout, _letters(path, place), sizes)
      start = end
  return _nest(out)


def write(params, table, config):
  """The inverse: {foreign name: numpy array}."""
  sizes, out = _sizes(config), {}
  flat = {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(x)
          for path, x in jax.tree.leaves_with_path(params)}
  if unknown := sorted(set(flat) - {path for parts in table.values()
                                    for path, _ in pairs(parts)}):
    raise ValueError(f"No tensor of this family holds {_few(unknown)}.")
  for pattern, parts in table.items():
    parts = pairs(parts)
    if parts[0][0] not in flat: continue
    for name, parts, place in _each(pattern, parts, config):
      out[name] = np.concatenate([
          _to_foreign(flat[path][place], layout, _letters(path, place), sizes)
          for path, layout in parts])
  return out


def _each(pattern, parts, config):
  """(name, parts, place): the tensors that a pattern stands for, and where theirs lie in ours."""
  ranges = [range(n) for letter, n in (("{L}", config.n_layers), ("{E}", config.n_experts))
            if letter in pattern]
  for place in itertools.product(*ranges):
    yield (pattern.format(**dict(zip("LE", place))), parts, place)


def pairs(value):
  """A table's value as a tuple of (our path, layout)."""
  return (value,) if isinstance(value[0], str) else value


def _without_copy_of_embedding(extra, wanted, get, table):
  """Some files of tied models store the head too; fine if it is the embedding."""
  heads = {name for name, parts in table.items() if parts[0] == "head.w_DV"}
  embedding = next(n for n, (parts, _) in wanted.items() if parts[0][0] == "embed.w_VD")
  if extra[0] not in heads: return extra
  return [] if np.array_equal(get(extra[0]), get(embedding)) else extra


def _few(names):
  return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def _sizes(c):
  return dict(V=c.vocab_size, D=c.d_model, L=c.n_layers, N=c.n_heads,
              K=c.n_kv_heads, H=c.head_dim, F=c.d_ff, E=c.n_experts, c=2, h=c.head_dim // 2)


@functools.lru_cache(maxsize=8)
def paths(config):
  """{path: shape} of the parameters that `config` has."""
  tree = jax.eval_shape(functools.partial(transformer.init, config), jax.random.key(0))
  return {jax.tree_util.keystr(path, simple=True, separator="."): x.shape
          for path, x in jax.tree.leaves_with_path(tree)}


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


def _to_ours(x, layout, ours, sizes):
  theirs, mine = _split(layout, ours)
  x = x.reshape([sizes[a] for a in theirs])
  x = x.transpose([theirs.index(a) for a in mine])
  return x.reshape([sizes[a] for a in ours])


def _to_foreign(x, layout, ours, sizes):
  theirs, mine = _split(layout, ours)
  x = x.reshape([sizes[a] for a in mine])
  x = x.transpose([mine.index(a) for a in theirs])
  return np.ascontiguousarray(x.reshape(_foreign_shape(layout, sizes)))


def _nest(flat):
  out = {}
  for path, x in flat.items():
    *parents, leaf = path.split(".")
    node = out
    for parent in parents:
      node = node.setdefault(parent, {})
    node[leaf] = x
  return out
