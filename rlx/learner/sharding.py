"""The device mesh and the sharding of parameters and batches.

A parameter's name ends in its axes (`q_LDNH`), so one table from axis letters to mesh axes
defines the sharding of every tree with such leaves: policy, PRM, value model, gradients and
optimizer state.
"""
import math
from typing import Any, Callable

import jax
from jax.sharding import NamedSharding, PartitionSpec
import numpy as np

from rlx.learner import hosts

MESH_AXES = ("data", "fsdp", "tensor")
ROWS = PartitionSpec(("data", "fsdp"))  # Rows of a batch are sharded over data and fsdp.
_AXIS: dict[str, str | tuple] = {
    "D": "fsdp", "N": "tensor", "K": "tensor", "F": "tensor", "V": "tensor"}


def make_mesh(*, data: int = 1, fsdp: int = 1, tensor: int = 1) -> jax.sharding.Mesh:
  """Returns a mesh over the first data * fsdp * tensor devices; data=-1 is the largest that fits.

  Raises:
    ValueError: there are too few devices.
  """
  return mesh_of(jax.devices(), data=data, fsdp=fsdp, tensor=tensor)


def mesh_of(devices: list, *, data: int, fsdp: int, tensor: int) -> jax.sharding.Mesh:
  """As `make_mesh`, of a list of devices."""
  n = len(devices)
  if data == -1:
    data = n // (fsdp * tensor)
  need = data * fsdp * tensor
  if not 0 < need <= n:
    raise ValueError(f"mesh: data={data} x fsdp={fsdp} x tensor={tensor} needs "
                     f"{need} devices; there are {n}.")
  return jax.sharding.Mesh(np.array(devices[:need]).reshape(data, fsdp, tensor), MESH_AXES)


def platform(mesh: jax.sharding.Mesh) -> str | None:
  """Returns the platform of a mesh's devices: cpu, gpu or tpu; None of an abstract mesh.

  Example:
    >>> sharding.platform(sharding.make_mesh())
    'cpu'
  """
  if isinstance(mesh, jax.sharding.AbstractMesh): return None
  name = mesh.devices.flat[0].platform
  return "gpu" if name in ("cuda", "rocm") else name


def spec(path: tuple, shape: tuple[int, ...], mesh: jax.sharding.Mesh) -> PartitionSpec:
  """Returns the PartitionSpec of a parameter from the axis letters at the end of its name.

  Key-value heads that are fewer than the devices of the tensor axis do not divide it: each device
  computes a copy of its own (`DecoderConfig.kv_copies`). Their axis D is spread over both axes.
  """
  leaf = next((str(k.key) for k in reversed(path) if hasattr(k, "key")), "")
  letters, tensor = leaf.rpartition("_")[2], mesh.shape["tensor"]
  if len(letters) != len(shape): return PartitionSpec()
  sizes, axes = dict(zip(letters, shape)), dict(_AXIS)
  if sizes.get("K", tensor) < tensor and tensor % sizes["K"] == 0:
    del axes["K"]
    if sizes.get("D", 1) % (mesh.shape["fsdp"] * tensor) == 0: axes["D"] = ("fsdp", "tensor")
  return PartitionSpec(*map(axes.get, letters))


def check(tree: Any, mesh: jax.sharding.Mesh) -> None:
  """Raises ValueError, naming the parameter, if the mesh does not divide one of its axes."""
  for path, x in jax.tree.leaves_with_path(tree):
    for size, axis in zip(x.shape, spec(path, x.shape, mesh)):
      if isinstance(axis, str) and size % mesh.shape[axis]:
        raise ValueError(
            f"mesh.{axis}={mesh.shape[axis]} does not divide an axis of size "
            f"{size} of {jax.tree_util.keystr(path)} {x.shape}.")


def place(tree: Any, mesh: jax.sharding.Mesh, *, copies: bool = False) -> Any:
  """Puts parameters or optimizer state on the mesh; for `copies` see `hosts.put`."""
  return hosts.put(
      tree, lambda path, x: NamedSharding(mesh, spec(path, np.shape(x), mesh)), copies=copies)


def replicate(tree: Any, mesh: jax.sharding.Mesh) -> Any:
  """Puts small arrays on every device of the mesh, whatever their names end in."""
  return hosts.put(tree, lambda path, x: NamedSharding(mesh, PartitionSpec()))


def replicate_shapes(tree: Any, mesh: jax.sharding.Mesh) -> Any:
  """Returns the shapes of arrays with the shardings of `replicate`."""
  return jax.tree.map(lambda x: jax.ShapeDtypeStruct(
      x.shape, x.dtype, sharding=NamedSharding(mesh, PartitionSpec())), tree)


def compute_sharded(fn: Callable, params: Any, mesh: jax.sharding.Mesh) -> Any:
  """Computes fn(params), such as an optimizer's state, with the sharding that `place` uses.

  Without explicit shardings XLA replicates values that do not depend on the input, such as zeros.
  """
  shardings = jax.tree.map(lambda x: x.sharding, shapes(jax.eval_shape(fn, params), mesh))
  return jax.jit(fn, out_shardings=shardings)(params)


def pin(tree: Any, mesh: jax.sharding.Mesh) -> Any:
  """Constrains parameters or optimizer state, inside a jitted function, to where `place` puts them.

  What an update returns has no sharding otherwise but what XLA chooses, which on GPUs is a copy of
  everything on each device.
  """
  if mesh.size == 1: return tree
  return jax.tree.map_with_path(lambda path, x: jax.lax.with_sharding_constraint(
      x, NamedSharding(mesh, spec(path, x.shape, mesh))), tree)


def move_to_memory(tree: Any, memory: str | None) -> Any:
  """Moves arrays, or the places of their shapes, to a memory of their devices; scalars stay.

  Args:
    memory: "pinned_host", or None for the devices' own.
  """
  def one(x):
    if not x.ndim: return x
    place_ = x.sharding.with_memory_kind(memory)
    if isinstance(x, jax.Array): return jax.device_put(x, place_)
    if memory and place_.memory_kind != memory:  # GPUs that are not here report no memories.
      place_ = NamedSharding(place_.mesh.abstract_mesh, place_.spec, memory_kind=memory)
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place_)
  return jax.tree.map(one, tree)


def gather(tree: Any, mesh: jax.sharding.Mesh) -> Any:
  """Constrains a tree, inside a jitted function, to be sharded over the tensor axis only."""
  return jax.tree.map_with_path(
      lambda path, x: jax.lax.with_sharding_constraint(x, _over_tensor(path, x, mesh)), tree)


def gather_shapes(tree: Any, mesh: jax.sharding.Mesh) -> Any:
  """Returns the shapes of a tree with the shardings of `gather`."""
  return jax.tree.map_with_path(lambda path, x: jax.ShapeDtypeStruct(
      x.shape, x.dtype, sharding=_over_tensor(path, x, mesh)), tree)


def _over_tensor(path, x, mesh):
  axes = [axis if axis == "tensor" else None for axis in spec(path, x.shape, mesh)]
  return NamedSharding(mesh, PartitionSpec(*axes))


def shapes(tree: Any, mesh: jax.sharding.Mesh) -> Any:
  """Returns the shapes of parameters or optimizer state, with the shardings of `place`."""
  return jax.tree.map_with_path(
      lambda path, x: jax.ShapeDtypeStruct(
          np.shape(x), x.dtype, sharding=NamedSharding(mesh, spec(path, np.shape(x), mesh))), tree)


def row_shapes(tree: Any, mesh: jax.sharding.Mesh, heads: bool = False) -> Any:
  """Returns the shapes of a batch, with the sharding of `place_rows`.

  Args:
    heads: whether arrays of four and more axes are keys or values, whose second axis is that of
      heads.
  """
  return jax.tree.map(lambda x: jax.ShapeDtypeStruct(
      x.shape, x.dtype, sharding=NamedSharding(mesh, PartitionSpec(
          *ROWS, *["tensor"] * (heads and x.ndim > 3)))), tree)


def place_rows(tree: Any, mesh: jax.sharding.Mesh) -> Any:
  """Puts a batch on the mesh, with its rows sharded over the data and fsdp axes."""
  return hosts.put(tree, lambda path, x: NamedSharding(mesh, ROWS))


def row_shards(mesh: jax.sharding.Mesh) -> int:
  """Returns the number of shards of a batch's rows."""
  return math.prod(mesh.shape[a] for a in ("data", "fsdp"))
