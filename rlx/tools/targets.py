"""Devices that are not here: their figures, and descriptions of them for XLA's compilers.

The compilers for TPUs (`libtpu`) and for NVIDIA GPUs (`jax-cuda12-plugin`, `jax-cuda13-plugin`)
need neither a driver nor a device. A mesh of described devices can be given to `build.build`;
arrays cannot be placed on it. In this process JAX then computes on the CPU.
"""
import dataclasses
import importlib.util
import os
from typing import Any

import jax
from jax.experimental import topologies

from rlx.learner import programs, sharding

_GIB = 2**30


@dataclasses.dataclass(frozen=True)
class Chip:
  """A kind of device, by its data sheet. Sizes are in bytes, rates in units per second."""
  hbm: float        # of TPUs what XLA may use of it; of GPUs all, see `usable_bytes`
  flops: float      # bfloat16, dense
  bandwidth: float  # of hbm
  link: float       # to other devices of its domain, for each direction
  domain: int       # devices that are connected by these links
  network: float    # per device, to other domains
  cores: int = 1    # that the name of a TPU slice counts per device
  # NVIDIA GPUs: name, and the figures that XLA's public description of it gives.
  gpu: str | None = None
  figures: tuple = ()  # core_count, fpus, shared memory, of it for a block, l2, clock, capability

  @property
  def platform(self) -> str:
    return "gpu" if self.gpu else "tpu"


CHIPS = {
    "v4": Chip(30.75 * _GIB, 2.75e14, 1.2e12, 300e9, 4096, 25e9 / 4, cores=2),
    "v5e": Chip(15.75 * _GIB, 1.97e14, 8.1e11, 200e9, 256, 25e9 / 8),
    "v5p": Chip(95.74 * _GIB, 4.59e14, 2.76e12, 600e9, 8960, 25e9 / 4, cores=2),
    "v6e": Chip(31.25 * _GIB, 9.2e14, 1.6e12, 448e9, 256, 100e9 / 8),
    "a100": Chip(85100068864, 3.12e14, 2.04e12, 300e9, 8, 25e9, gpu="NVIDIA A100-SXM4-80GB",
                 figures=(108, 64, 167936, 166912, 41943040, 1.41, 8)),
    "h100": Chip(84942979072, 9.89e14, 3.35e12, 450e9, 8, 50e9, gpu="NVIDIA H100 80GB HBM3",
                 figures=(132, 128, 233472, 232448, 52428800, 1.98, 9)),
    "h200": Chip(151397597184, 9.89e14, 4.8e12, 450e9, 8, 50e9, gpu="NVIDIA H200 141GB HBM3e",
                 figures=(132, 128, 233472, 232448, 52428800, 1.98, 9)),
    "b200": Chip(191514411008, 2.25e15, 7.67e12, 900e9, 8, 50e9, gpu="NVIDIA B200",
                 figures=(148, 128, 233472, 232448, 132644864, 1.965, 10))}
GPU_COMPILERS = ("jax_plugins.xla_cuda12", "jax_plugins.xla_cuda13")
# Devices of a slice -> its shape. Those of v4 and v5p have three axes.
_FLAT = {1: "1x1", 4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
_CUBE = {4: "2x2x1", 8: "2x2x2", 16: "2x2x4", 32: "2x4x4", 64: "4x4x4", 128: "4x4x8",
         256: "4x8x8", 512: "8x8x8"}
_GPU = """gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
  shared_memory_per_core: {shared} threads_per_core_limit: 2048 core_count: {cores}
  fpus_per_core: {fpus} block_dim_limit_x: 2147483647 block_dim_limit_y: 65535
  block_dim_limit_z: 65535 memory_bandwidth: {bandwidth:.0f} l2_cache_size: {l2}
  clock_rate_ghz: {clock} device_memory_size: {memory:.0f}
  shared_memory_per_block_optin: {block} cuda_compute_capability {{ major: {major} minor: 0 }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}}
platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 8 patch: 0 }}
device_description_str: "{name}"
"""


@dataclasses.dataclass(frozen=True)
class Target:
  """Devices of one kind, by name, such as v5e-8 or h100-8."""
  name: str
  chip: Chip
  devices: int


def parse(name: str) -> Target:
  """The Target of a name: KIND-N, with as many devices as the name says.

  Names of TPU slices are those of the cloud: N counts cores for v4 and v5p, which have two per
  device, and devices for v5e and v6e.

  Raises:
    ValueError: there is no such kind, or no slice of this size.
  Example:
    >>> targets.parse("v5p-8").devices
    4
  """
  kind, _, count = name.lower().partition("-")
  chip = CHIPS.get(kind)
  n = int(count) // chip.cores if chip and count.isdigit() else 0
  sizes = None if chip is None or chip.gpu else _FLAT if chip.cores == 1 else _CUBE
  if chip is None or n < 1 or (sizes and n not in sizes):
    names = [f"{kind}-{m * c.cores}" for kind, c in CHIPS.items()
             for m in ((8, 64) if c.gpu else (_FLAT if c.cores == 1 else _CUBE))]
    raise ValueError(f"target={name!r}: KIND-N, such as {', '.join(names)}; any N for GPUs.")
  return Target(name.lower(), chip, n)


def memory_fraction(chip: Chip) -> float:
  """The share of `hbm` that JAX gives to a process: on GPUs what the environment says, or 0.75."""
  names = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")  # The second is older.
  return float(next(filter(None, map(os.environ.get, names)), 0.75)) if chip.gpu else 1.0


def usable_bytes(chip: Chip) -> int:
  """The memory of a device that a run may use."""
  return int(chip.hbm * memory_fraction(chip))


def devices(target: Target) -> list:
  """Descriptions of the target's devices, for which the compilers of their platform can be called.

  Raises:
    ValueError: the compiler is not installed, or this process has already started another backend.
  """
  packages, extra = ((GPU_COMPILERS, "targets-gpu") if target.chip.gpu else
                     (("libtpu",), "targets-tpu"))
  if not any(map(_is_installed, packages)):
    raise ValueError(f"target={target.name!r}: its compiler is not installed; "
                     f"pip install 'rlx[{extra}]'.")
  jax.config.update("jax_platforms", "cpu")  # No device of this machine is asked for.
  jax.config.update("jax_enable_compilation_cache", False)  # It cannot be read without a device.
  os.environ.update({k: v for k, v in _QUIET.items() if k not in os.environ})
  if target.chip.gpu:
    cores, fpus, shared, block, l2, clock, major = target.chip.figures
    return topologies.get_topology_desc(
        topology_name=target.name, platform="cuda", topology=f"1x1x{target.devices}",
        target_config=_GPU.format(
            cores=cores, fpus=fpus, shared=shared, block=block, l2=l2, clock=clock, major=major,
            bandwidth=target.chip.bandwidth, memory=target.chip.hbm, name=target.chip.gpu)).devices
  kind = target.name.partition("-")[0]
  shape = (_FLAT if target.chip.cores == 1 else _CUBE)[target.devices]
  more: dict[str, Any] = {}
  if kind == "v4": more["chip_config_name"] = "megacore"  # As JAX uses its two cores.
  if target.devices == 1: more["chips_per_host_bounds"] = (1, 1, 1)
  return topologies.get_topology_desc(f"{kind}:{shape}", platform="tpu", **more).devices


# libtpu otherwise asks the cloud's metadata server which machine this is.
_QUIET = dict(TPU_SKIP_MDS_QUERY="1", TPU_WORKER_HOSTNAMES="localhost",
              TPU_ACCELERATOR_TYPE="v5litepod-8", TPU_STDERR_LOG_LEVEL="3", TPU_MIN_LOG_LEVEL="3",
              ALLOW_MULTIPLE_LIBTPU_LOAD="1")  # Several processes may compile.


def _is_installed(package):
  try:
    return importlib.util.find_spec(package) is not None
  except ModuleNotFoundError:  # The package that would contain it.
    return False


def mesh_of(target: Target, axes: dict[str, int]) -> jax.sharding.Mesh:
  """A mesh of the target's devices; `axes` are those of the config's `mesh`.

  Raises:
    ValueError: as `devices`; or the axes do not take all devices.
  """
  mesh = sharding.mesh_of(devices(target), **axes)
  if mesh.size != target.devices:
    sizes = " x ".join(f"mesh.{k}={v}" for k, v in axes.items())
    raise ValueError(f"{sizes}: target={target.name!r} has {target.devices} devices; "
                     "mesh.data=-1 takes all that are left.")
  return mesh


def bandwidths(chip: Chip, mesh: dict[str, int]) -> dict[str, float]:
  """{mesh axis: bytes/s} into a device from the others of a group along this axis.

  Devices are numbered with `tensor` innermost and fill domains in this order. A group within a
  domain has all of the chip's links; of a group that spans domains, each device's part arrives
  once through the networks of the devices that share a domain.
  """
  bandwidth, inner = {}, 1
  for axis in reversed(sharding.MESH_AXES):
    n = mesh[axis]
    local = max(1, min(n, chip.domain // inner))
    bandwidth[axis] = chip.link if local == n else min(chip.link, local * chip.network)
    inner *= n
  return bandwidth


def seconds(chip: Chip, mesh: dict[str, int], work: programs.Work) -> dict[str, float]:
  """{"FLOPs", "memory", "links"}: seconds that a program takes at least, by each of the three.

  FLOPs / peak, bytes / bandwidth of memory, bytes / bandwidth between devices, at the figures of
  the data sheet, which no program reaches.
  """
  speed = bandwidths(chip, mesh)
  slowest = lambda axes: min(speed[axis] for axis in axes.split("+"))
  return {"FLOPs": work.flops / chip.flops, "memory": work.traffic / chip.bandwidth,
          "links": sum(n / slowest(axes) for axes, n in work.received.items())}
