"""A family's name table applied: tensors of a checkpoint <-> our parameter tree.

A table maps {foreign name: (our path, layout)}; see `models/families/llama.py`.
"""
import functools
import re

import jax
import numpy as np

from rlx.models import transformer


def read(names, get, table, config, source):
  """Builds the parameter tree of `config` from a checkpoint's tensors.

  Args:
    names: names of the tensors that the checkpoint has.
    get: name -> numpy array.
    table: {foreign name: (our path, layout)}.
    config: DecoderConfig; param_dtype is the dtype of the result.
    source: the checkpoint, for messages.
  Returns:
    nested dict of numpy arrays. They stay on the host: a model may be larger
    than one device, and `learner/sharding.py` decides what goes where.
  Raises:
    ValueError: tensors are missing, left over or of another shape.
  """
  shapes, names = _shapes(config), set(names)
  wanted = {}  # name -> (our path, layer or None, layout)
  for pattern, (path, layout) in table.items():
    if path in shapes:
      for layer in range(config.n_layers) if "{L}" in pattern else (None,):
        wanted[pattern.replace("{L}", str(layer))] = (path, layer, layout)
  if missing := sorted(set(wanted) - names):
    raise ValueError(f"{source}: {len(missing)} tensors are missing: {_few(missing)}.")
  extra = sorted(names - set(wanted))
  if config.tied_head and len(extra) == 1:
    extra = _without_copy_of_embedding(extra, wanted, get, table)
  if extra:
    raise ValueError(f"{source}: {len(extra)} tensors are not part of the model: "
                     f"{_few(extra)}.")
  out = {path: np.empty(shape, config.param_dtype) for path, shape in shapes.items()}
  sizes = _sizes(config)
  for name, (path, layer, layout) in wanted.items():
    foreign = np.asarray(get(name))
    expected = _foreign_shape(layout, sizes)
    if foreign.shape != expected:
      raise ValueError(f"{source}: {name} has shape {foreign.shape}; config.json "
                       f"makes it {expected}.")
    x = _to_ours(foreign, layout, _letters(path), sizes)
    if layer is None: out[path][...] = x
    else: out[path][layer] = x
  return _nest(out)


def write(params, table, config):
  """The inverse: {foreign name: numpy array}."""
  sizes, out = _sizes(config), {}
  flat = {jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(x)
          for path, x in jax.tree.leaves_with_path(params)}
  paths = {path for path, _ in table.values()}
  if unknown := sorted(set(flat) - paths):
    raise ValueError(f"No tensor of this family holds {_few(unknown)}.")
  for pattern, (path, layout) in table.items():
    if path not in flat: continue
    for layer in range(config.n_layers) if "{L}" in pattern else (None,):
      x = flat[path] if layer is None else flat[path][layer]
      out[pattern.replace("{L}", str(layer))] = _to_foreign(
          x, layout, _letters(path), sizes)
  return out


def _without_copy_of_embedding(extra, wanted, get, table):
  """Some files of tied models store the head too; fine if it is the embedding."""
  heads = {name for name, (path, _) in table.items() if path == "head.w_DV"}
  embedding = next(n for n, (path, *_) in wanted.items() if path == "embed.w_VD")
  if extra[0] not in heads: return extra
  return [] if np.array_equal(get(extra[0]), get(embedding)) else extra


def _few(names):
  return ", ".join(names[:4]) + (", ..." if len(names) > 4 else "")


def _sizes(c):
  return dict(V=c.vocab_size, D=c.d_model, L=c.n_layers, N=c.n_heads,
              K=c.n_kv_heads, H=c.head_dim, F=c.d_ff, c=2, h=c.head_dim // 2)


def _shapes(config):
  """{our path: shape}."""
  tree = jax.eval_shape(functools.partial(transformer.init, config),
                        jax.random.key(0))
  return {jax.tree_util.keystr(path, simple=True, separator="."): x.shape
          for path, x in jax.tree.leaves_with_path(tree)}


def _letters(path):
  """Axes of one layer of a parameter."""
  return path.rpartition("_")[2].replace("L", "")


def _foreign_shape(layout, sizes):
  groups = re.findall(r"\((\w+)\)|(\w)", layout)
  return tuple(int(np.prod([sizes[a] for a in group or single]))
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
