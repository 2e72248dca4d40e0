"""What depends on the device: precision, kernels, the same bits again.

`python -m pytest -m gpu` runs this file and those of conftest.GPU, on a GPU or without one.
"""
import concurrent.futures
import contextlib
import dataclasses
import os

import jax
import numpy as np
import pytest

from configs import quickstart
from experiments.bench import gpu
from rlx import build
from rlx.models import decode_kernel, logps, transformer
from rlx.stages import sampling
from rlx.tools import doctor
from tests import tiny
from tests.models import test_decode_kernel

PLATFORM = jax.default_backend()
# What rounding explains, by the dtype of activations: differences of log-probs from those in
# float64, the largest in nats, and the relative error of the gradient.
ROUNDING = {"float32": (1e-5, 2e-6), "bfloat16": (0.01, 0.03)}
CONFIG = transformer.DecoderConfig(
    vocab_size=67, d_model=64, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=16, d_ff=96,
    qkv_bias=True)


def logps_and_gradient(dtype, kind="blocks"):
  """Log-probs of random tokens, and the gradient of their weighted sum, in float64 on the host."""
  config = dataclasses.replace(CONFIG, dtype=dtype, attention=kind)
  rng = np.random.default_rng(0)
  tokens_BS, weight_BT = rng.integers(0, 67, (4, 48)), rng.normal(size=(4, 32))
  params = jax.tree.map(lambda x: (0.2 * x).astype(config.param_dtype), tiny.draw_decoder(CONFIG))
  columns_BS = np.broadcast_to(np.arange(48), (4, 48))
  def total(params):
    logps_BT = logps.logps(params, config, tokens_BS, columns_BS, columns_BS >= 0,
                           completion_width=32)[0]
    return (weight_BT.astype(logps_BT.dtype) * logps_BT).sum(), logps_BT
  gradient, logps_BT = jax.jit(jax.grad(total, has_aux=True))(params)
  return np.asarray(logps_BT, float), np.concatenate(
      [np.asarray(x, float).ravel() for x in jax.tree.leaves(gradient)])


@pytest.fixture(scope="module")
def exact():
  """The same in float64, on the CPU."""
  with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
    return logps_and_gradient("float64")


@pytest.mark.parametrize("dtype, kind", [
    ("float32", "blocks"), ("bfloat16", "blocks"), pytest.param(
        "bfloat16", "cudnn", marks=pytest.mark.skipif(PLATFORM != "gpu", reason="no GPU"))])
def test_log_probs_and_gradients_differ_from_float64_by_rounding(exact, dtype, kind):
  (logps_BT, gradient), (expected_BT, expected) = logps_and_gradient(dtype, kind), exact
  largest, relative = ROUNDING[dtype]
  assert 0 < np.abs(logps_BT - expected_BT).max() < largest
  assert 0 < np.linalg.norm(gradient - expected) < relative * np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", ROUNDING)
def test_sampler_and_trainer_differ_by_rounding(dtype):
  c = quickstart.get_config("smoke")
  c.model.dtype = dtype
  with contextlib.closing(build.build(c)) as run:
    _, rollouts, _, logps_BT, _ = doctor.first_batch(run)
  gap_N = np.abs(rollouts.sampler_logps_BT - logps_BT)[rollouts.action_BT]
  mean, largest = sampling.GAPS[dtype]
  assert 0 < gap_N.mean() < mean and gap_N.max() < largest


@pytest.mark.parametrize("heads, head_dim", [((6, 2), 16), ((14, 2), 64)])
def test_the_kernel_of_one_token_rounds_as_attention_in_parts(heads, head_dim):
  """Over several blocks of columns, the last of them cut, and rows of different lengths."""
  group = heads[0] // heads[1]
  assert decode_kernel.find_fault(
      group=group, head_dim=head_dim, interpret=PLATFORM != "gpu") is None
  config = dataclasses.replace(test_decode_kernel.CONFIG, n_heads=heads[0], n_kv_heads=heads[1],
                               head_dim=head_dim, platform=PLATFORM)
  expected, *computed = (test_decode_kernel.step(dataclasses.replace(config, **changes),
                                                 2, 3, 70, 130, 100)[0] for changes in (
      {}, dict(dtype="bfloat16"), dict(dtype="bfloat16", decoding="fused")))
  parts, fused = (np.std(x - expected) / np.std(expected) for x in computed)
  assert 1e-4 < fused < 1.3 * parts < 0.05


def test_runs_are_equal_bit_for_bit_with_the_documented_flag(tmp_path):
  """quickstart:smoke twice, and once more with a SIGKILL after its second step."""
  shared = os.environ["JAX_COMPILATION_CACHE_DIR"]
  # Two processes tune kernels, where there are any to tune, each for itself.
  caches = dict(first=shared, second=tmp_path / "own" if PLATFORM == "gpu" else shared)
  with concurrent.futures.ThreadPoolExecutor() as pool:
    def start(name):
      return pool.submit(gpu.train, tmp_path / name, gpu.DETERMINISTIC,
                         caches.get(name, shared), kill=name == "killed")
    runs = [start(name) for name in caches]
    for run in runs: assert "failed" not in run.result(), run.result()
    assert start("killed").result()["killed"]
  for name in ("second", "killed"):
    found = gpu.differences(tmp_path / "first", tmp_path / name)
    assert found["same"], found
