"""The mesh, and where each axis of a parameter lies on it.

A parameter's name ends in its axes (`q_LDNH`), so the layout is one table from
axis letters to mesh axes. It serves any tree with such leaves: policy, PRM,
value model, gradients, optimizer state.
"""
import math

import jax
from jax.sharding import NamedSharding, PartitionSpec
import numpy as np

from rlx.learner import hosts

MESH_AXES = ("data", "fsdp", "tensor")
ROWS = PartitionSpec(("data", "fsdp"))  # Batches: rows over all but `tensor`.
_AXIS = {"D": "fsdp", "N": "tensor", "K": "tensor", "F": "tensor", "V": "tensor"}


def make_mesh(*, data=1, fsdp=1, tensor=1):
  """A mesh over the first data * fsdp * tensor devices; data=-1 takes the rest.

  Raises:
    ValueError: the devices do not suffice or do not divide.
  """
  n = len(jax.devices())
  if data == -1:
    data = n // (fsdp * tensor)
  need = data * fsdp * tensor
  if not 0 < need <= n:
    raise ValueError(f"mesh: data={data} x fsdp={fsdp} x tensor={tensor} needs "
                     f"{need} devices; there are {n}.")
  devices = np.array(jax.devices()[:need]).reshape(data, fsdp, tensor)
  return jax.sharding.Mesh(devices, MESH_AXES)


def spec(path, shape):
  """PartitionSpec of a parameter from the axis letters that end its name."""
  leaf = next((str(k.key) for k in reversed(path) if hasattr(k, "key")), "")
  letters = leaf.rpartition("_")[2]
  if len(letters) != len(shape): return PartitionSpec()
  return PartitionSpec(*(_AXIS.get(a) for a in letters))


def check(tree, mesh):
  """Refuses sizes that the mesh does not divide, naming the parameter."""
  for path, x in jax.tree.leaves_with_path(tree):
    for size, axis in zip(x.shape, spec(path, x.shape)):
      if axis and size % mesh.shape[axis]:
        raise ValueError(
            f"mesh.{axis}={mesh.shape[axis]} does not divide an axis of size "
            f"{size} of {jax.tree_util.keystr(path)} {x.shape}.")


def place(tree, mesh, *, copies=False):
  """Puts parameters or optimizer state on the mesh; `copies` as `hosts.put`."""
  return hosts.put(
      tree, lambda path, x: NamedSharding(mesh, spec(path, np.shape(x))), copies=copies)


def made(fn, params, mesh):
  """fn(params), such as an optimizer's state, where `place` would put it.

  By itself XLA makes what depends on no number, as zeros do, whole on every device.
  """
  where = jax.tree.map(lambda x: x.sharding, shapes(jax.eval_shape(fn, params), mesh))
  return jax.jit(fn, out_shardings=where)(params)


def gathered(tree, mesh):
  """In a jitted function: the tree, spread over the tensor axis alone."""
  def leaf(path, x):
    axes = [axis if axis == "tensor" else None for axis in spec(path, x.shape)]
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, PartitionSpec(*axes)))
  return jax.tree.map_with_path(leaf, tree)


def shapes(tree, mesh):
  """Shapes of parameters or optimizer state, as `place` would put them."""
  return jax.tree.map_with_path(
      lambda path, x: jax.ShapeDtypeStruct(
          np.shape(x), x.dtype, sharding=NamedSharding(mesh, spec(path, np.shape(x)))),
      tree)


def row_shapes(tree, mesh):
  """Shapes of a batch, as `place_rows` would put it."""
  return jax.tree.map(lambda x: jax.ShapeDtypeStruct(
      x.shape, x.dtype, sharding=NamedSharding(mesh, ROWS)), tree)


def place_rows(tree, mesh):
  """Puts a batch on the mesh, rows over the data and fsdp axes."""
  return hosts.put(tree, lambda path, x: NamedSharding(mesh, ROWS))


def row_shards(mesh):
  """How many devices a batch's rows are spread over."""
  return math.prod(mesh.shape[a] for a in ("data", "fsdp"))
