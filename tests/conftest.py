import ctypes
import functools
import gc
import importlib.metadata
import os
import pathlib
import resource
import sys
import tempfile
import types

# Before jax starts: several CPU devices for the sharding tests, and quick
# compilation, which is most of the time: not optimised, not cut into parts, loops
# written by XLA's older emitters while it has them (a gradient compiles in 0.3 s, not 1.8).
_HAS_OLD_EMITTERS = importlib.metadata.version("jaxlib").startswith("0.10.")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8 "
                      "--xla_backend_optimization_level=0 "
                      + "--xla_cpu_use_fusion_emitters=false " * _HAS_OLD_EMITTERS
                      + "--xla_cpu_parallel_codegen_split_count=1")

# One test reads what another one compiled, also in other processes, which inherit this.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR",
                      str(pathlib.Path(tempfile.gettempdir()) / "rlx-test-cache"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")

import jax  # pylint: disable=g-import-not-at-top
from jax._src.interpreters import mlir  # pylint: disable=g-import-not-at-top
import pytest  # pylint: disable=g-import-not-at-top

from rlx import cli  # pylint: disable=g-import-not-at-top
from rlx.io import curves  # pylint: disable=g-import-not-at-top

jax.config.update("jax_numpy_rank_promotion", "raise")
# For each program jax makes an MLIR context, which takes 5 ms and is kept with 1 MB: a third of the
# time that a single operation takes to compile. One does for all.
mlir.make_ir_context = functools.cache(mlir.make_ir_context)

# The files that take longest, longest first: one of them last would keep one core busy alone.
SLOW = ("test_attacks", "test_loop", "test_pages", "test_hosts", "test_api", "test_shipped",
        "test_notebooks", "test_devices", "test_resume", "test_on_gpu", "test_pool", "test_parity",
        "test_contracts", "test_train_scorer", "test_quickstart", "test_convert", "test_preflight",
        "test_golden", "test_attacks_asserts", "test_code_tests", "test_fuzz", "test_readme",
        "test_fields")

# Files, and folders, of `pytest -m gpu`: what runs on the default device and depends on it.
GPU = ("test_on_gpu", "losses", "rewards", "advantages", "test_decode", "test_logps", "test_packing",
       "test_transformer", "test_decoding", "test_sampler")

# Bytes of a process: when it has grown by the first, it drops, after a file, what it has
# compiled; with the second, the file fails.
MEMORY, TOO_MUCH = 1.5e9, 4e9
_LEFT = [0.0]  # Bytes when it last did.


def pytest_addoption(parser):
  parser.addoption("--soak", action="store_true",
                   help="also what takes minutes: see CONTRIBUTING.md")
  parser.addoption("--record", action="store_true",
                   help="write docs/models.md (tests/models/test_parity.py, "
                   "tests/io/test_config_sweep.py)")


def pytest_collection_modifyitems(items):
  order = {stem: i for i, stem in enumerate(SLOW)}
  items.sort(key=lambda item: order.get(item.path.stem, len(order)))
  for item in items:
    if {item.path.stem, item.path.parent.name} & set(GPU): item.add_marker("gpu")
  # Tracing allocates many objects: with the default thresholds, the garbage collector takes an
  # eighth of the time, most of it for the modules imported so far.
  gc.freeze()
  gc.set_threshold(50_000, 20, 50)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
  """Ends a file: a process that holds much drops what it has compiled."""
  if nextitem is not None and nextitem.path == item.path: return
  for x in vars(item.module).values():
    if hasattr(x, "cache_clear"): x.cache_clear()
  statm = pathlib.Path("/proc/self/statm")
  pages = lambda: int(statm.read_text().split()[1]) if statm.exists() else 0
  if (held := pages() * resource.getpagesize()) < _LEFT[0] + MEMORY: return
  jax.clear_caches()
  mlir.make_ir_context.cache_clear()
  gc.collect()
  # What was freed lies between what is in use, and counts until it is given back.
  getattr(ctypes.CDLL(None), "malloc_trim", lambda _: None)(0)
  _LEFT[0] = pages() * resource.getpagesize()
  assert held < TOO_MUCH, f"{item.path.name} leaves a process of {held / 1e9:.1f} GB."


@pytest.fixture(scope="session", autouse=True)
def draw_curves():
  """The function `curves.draw`; runs of the tests leave it out, as it takes a second each."""
  draw = curves.draw
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(curves, "draw", lambda workdir, baseline=None: None)
    yield draw


@pytest.fixture(scope="session")
def tiny_files(tmp_path_factory):
  """The folder of a tiny model and its questions (tests/tiny.py)."""
  from tests import tiny  # pylint: disable=g-import-not-at-top
  folder = tmp_path_factory.mktemp("tiny")
  tiny.write(folder)
  return folder


@pytest.fixture
def command(monkeypatch, capsys):
  """Function that runs `rlx ARGUMENT ...` in this process."""
  def run(*arguments):
    code = 0
    monkeypatch.setattr(sys, "argv", ["rlx", *arguments])
    capsys.readouterr()
    try:
      cli.main()
    except SystemExit as e:
      code = e.code
    return types.SimpleNamespace(
        returncode=code, **dict(zip(("stdout", "stderr"), capsys.readouterr())))
  return run
