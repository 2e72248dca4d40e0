"""The kernels of attention against each other, and what they refuse."""
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.build import models as build_models
from rlx.learner import sharding
from rlx.models import attention, packing, transformer
from tests import tiny

B, S, N, K, H = 2, 150, 4, 2, 32


@pytest.fixture(scope="module")
def qkv():
  rng = np.random.default_rng(0)
  return [rng.normal(size=(B, S, n, H)).astype(np.float32) for n in (N, K, K)]


@pytest.fixture(scope="module")
def rows():
  """(valid_BS, segments_BS): left padding in row 0, three segments in row 1."""
  columns = np.arange(S)
  return (np.stack([columns >= 40, columns < 140]),
          np.stack([columns * 0, np.searchsorted([60, 61], columns, "right")]))


@functools.partial(jax.jit, static_argnames=("kind", "softcap", "window"))
def _attend(qkv, valid_BS, segments_BS=None, *, kind, softcap=None, window=0):
  """(gradient, output)"""
  weights = np.random.default_rng(1).normal(size=(B, S, N, H))
  def total(qkv):
    mask = attention.prepare(kind, valid_BS, segments_BS, window=window,
                             positions_BS=np.broadcast_to(np.arange(S), (B, S)))
    out = attention.attend(kind, *qkv, mask, scale=H**-0.5, softcap=softcap, window=window)
    return jnp.sum(jnp.where(valid_BS[..., None, None], weights * out, 0)), out
  return jax.grad(total, has_aux=True)(qkv)


def _compare(kind, qkv, valid_BS, segments_BS=None, **options):
  """A kernel with blocks."""
  (gradient, out), (expected_gradient, expected) = jax.device_get([
      _attend(qkv, valid_BS, segments_BS, kind=k, **options) for k in (kind, "blocks")])
  np.testing.assert_allclose(out[valid_BS], expected[valid_BS], atol=1e-5)
  assert all(np.abs(g).max() > 0.1 for g in expected_gradient)
  for a, b in zip(gradient, expected_gradient): np.testing.assert_allclose(a, b, atol=2e-5)
  return out


def test_multiply_sums_in_float32_and_rounds_gradients_once():
  """Against float64 with the same factors; 2^-8 is half a unit in the last place of bfloat16."""
  rng = np.random.default_rng(0)
  a, b = (rng.normal(size=shape).astype("bfloat16") for shape in ((5, 300), (300, 7)))
  d = rng.normal(size=(5, 7)).astype(np.float32)
  @jax.jit
  def run(a, b, d):
    out, pull = jax.vjp(functools.partial(attention.multiply, "UD,DV->UV"), a, b)
    return out, pull(d)
  out, pulled = run(a, b, d)
  wide = lambda x: np.asarray(x, np.float64)
  assert out.dtype == jnp.float32
  np.testing.assert_allclose(out, wide(a) @ wide(b), atol=1e-4)
  rounded = wide(d.astype("bfloat16"))
  for got, expected in zip(pulled, (rounded @ wide(b).T, wide(a).T @ rounded)):
    assert got.dtype == jnp.bfloat16
    np.testing.assert_allclose(wide(got), expected, rtol=2**-8, atol=1e-6)


def test_splash_interpreted_equals_blocks(qkv, rows):
  assert np.isfinite(_compare("splash", qkv, *rows)).all()


@pytest.mark.parametrize("window, scale, softcap", [(0, H**-0.5, None), (20, 0.5, 1.5)],
                         ids=["plain", "window"])
def test_blocks_is_softmax_over_the_keys_that_the_mask_allows(qkv, rows, window, scale, softcap):
  """In float64, with loops. Branches: the first 10 columns of row 0 are a trunk."""
  valid_BS, segments_BS = rows
  branches_BS = np.stack([np.clip(np.arange(S) - 49, 0, None) // 30, np.zeros(S, int)])
  # In each branch, positions continue from those of the trunk.
  positions_BS = np.where(branches_BS > 0, 10 + (np.arange(S) - 79) % 30, np.arange(S))
  out_BSNH = jax.jit(lambda *qkv: attention.attend("blocks", *qkv, attention.prepare(
      "blocks", jnp.asarray(valid_BS), jnp.asarray(segments_BS), jnp.asarray(branches_BS),
      positions_BS=jnp.asarray(positions_BS), window=window), scale=scale, softcap=softcap))(*qkv)
  q, k, v = (x.astype(np.float64) for x in qkv)
  for b, s, n in [(0, 45, 0), (0, 75, 1), (0, 149, 3), (1, 60, 2), (1, 130, 0)]:
    seen = [j for j in range(s + 1) if valid_BS[b, j]
            and segments_BS[b, j] == segments_BS[b, s]
            and branches_BS[b, j] in (0, branches_BS[b, s])
            and (not window or positions_BS[b, s] - positions_BS[b, j] < window)]
    assert 0 < len(seen) < s + 1
    scores = k[b, seen, n // 2] @ q[b, s, n] * scale
    scores = np.exp(softcap * np.tanh(scores / softcap) if softcap else scores)
    np.testing.assert_allclose(out_BSNH[b, s, n], scores @ v[b, seen, n // 2] / scores.sum(),
                               atol=1e-5)


@pytest.fixture
def cudnn(monkeypatch):
  """The options of calls for cuDNN, which needs a GPU; XLA computes them, NaN on padding."""
  calls, attend = [], jax.nn.dot_product_attention

  def called(q_BSNH, k_BSKH, v_BSKH, **options):
    calls.append(options)
    padding_BS11 = (jnp.arange(q_BSNH.shape[1])[None] >= options["query_seq_lengths"][:, None])[
        ..., None, None]
    out = attend(q_BSNH, k_BSKH, v_BSKH, **options | dict(implementation="xla"))
    return jnp.where(padding_BS11, jnp.nan, out)

  monkeypatch.setattr(jax.nn, "dot_product_attention", called)
  return calls


@pytest.mark.parametrize("kind, options", [
    ("cudnn", dict(window=0)), ("cudnn", dict(window=20)),
    ("splash", dict(window=20, softcap=1.5))], ids=str)
def test_windows_and_soft_caps_of_kernels(qkv, cudnn, kind, options):
  valid_BS = np.arange(S) < np.array([110, S])[:, None]
  _compare(kind, qkv, valid_BS, **options)
  if kind == "cudnn": assert cudnn[-1]["implementation"] == "cudnn" and "mask" not in cudnn[-1]


@pytest.mark.parametrize("more", ["branches_BS", "trunks"])
@pytest.mark.parametrize("kind", ["cudnn", "splash"])
def test_kernels_and_branches_do_not_mix(rows, kind, more):
  with pytest.raises(ValueError, match=f"'{kind}' has no branches and no trunks"):
    attention.prepare(kind, *rows, **{more: rows[1]})


@pytest.mark.parametrize("kind", ["cudnn", "splash"])
def test_a_packed_batch_under_a_kernel(kind, cudnn):
  config = transformer.DecoderConfig(
      vocab_size=31, d_model=16, n_layers=1, n_heads=2, n_kv_heads=1, head_dim=8,
      d_ff=16, attention=kind)
  params, rng = tiny.draw_decoder(config), np.random.default_rng(0)
  prompt_len_B, completion_len_B = np.array([3, 1, 2, 3]), np.array([2, 3, 0, 1])
  plan = packing.plan(prompt_len_B, completion_len_B, 3, 3, config, trunk_B=np.zeros(4, int))
  assert set(plan.trunk_YC[plan.source_YC >= 0]) == {0, 1, 3}  # Nothing is shared.
  if kind == "cudnn":  # Each row is alone and starts at column 0.
    np.testing.assert_array_equal((plan.source_YC >= 0).sum(axis=1), [4, 3, 0, 3])
    assert plan.source_YC.shape == (4, 6) and (plan.source_YC[[0, 1, 3], :3] >= 0).all()
  tokens = rng.integers(0, 31, (4, 6))
  positions = np.maximum(np.arange(6) - (3 - prompt_len_B[:, None]), 0)
  hidden = jax.jit(packing.hidden, static_argnums=1)
  with_kernel, expected = (np.asarray(hidden(params, c, tokens, positions, plan)) for c in (
      config, dataclasses.replace(config, attention="blocks")))
  listed = plan.state_U >= 0
  np.testing.assert_allclose(with_kernel[:, listed], expected[:, listed], atol=1e-5)


def test_rows_of_cudnn_are_moved_to_the_first_column(cudnn):
  """Left-padded prompts, without a plan; and in the columns of the prompts afterwards."""
  config = transformer.DecoderConfig(
      vocab_size=31, d_model=16, n_layers=2, n_heads=2, n_kv_heads=1, head_dim=8, d_ff=16)
  params, rng = tiny.draw_decoder(config), np.random.default_rng(0)
  valid_BS = np.arange(8) >= np.array([0, 3, 7])[:, None]
  batch = rng.integers(0, 31, (3, 8)), np.maximum(np.cumsum(valid_BS, axis=1) - 1, 0), valid_BS
  def run(config):
    return jax.device_get(jax.jit(lambda params: (
        transformer.hidden(params, config, *batch),
        *transformer.prefill(params, config, *batch)))(params))
  (hidden, *kv), (expected, *expected_kv) = run(dataclasses.replace(
      config, attention="cudnn")), run(config)
  np.testing.assert_allclose(hidden[valid_BS], expected[valid_BS], atol=1e-5)
  for x_LBSKH, expected_LBSKH in zip(kv, expected_kv):
    np.testing.assert_allclose(x_LBSKH[:, valid_BS], expected_LBSKH[:, valid_BS], atol=1e-5)


@functools.partial(jax.jit, static_argnums=1)
@jax.value_and_grad
def _weighted(params, config, batch, weight_BSD):
  return (transformer.hidden(params, config, *batch) * weight_BSD).sum()


@pytest.mark.parametrize("mesh", [dict(data=2, fsdp=2, tensor=2), dict(tensor=2)], ids=str)
def test_each_device_calls_the_kernel_for_its_rows_and_heads(mesh):
  mesh, rng = sharding.make_mesh(**mesh), np.random.default_rng(0)
  config = transformer.DecoderConfig(
      vocab_size=32, d_model=16, n_layers=1, n_heads=4, n_kv_heads=2, head_dim=8, d_ff=16,
      attention="splash")
  batch = rng.integers(0, 31, (8, 6)), np.arange(48).reshape(8, 6) % 6, np.ones((8, 6), bool)
  weight_BSD = rng.normal(size=(8, 6, 16)).astype(np.float32)
  params = tiny.draw_decoder(config)
  expected = _weighted(params, dataclasses.replace(config, attention="blocks"), batch, weight_BSD)
  jax.tree.map(
      lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3), _weighted(
          sharding.place(params, mesh), build_models.adapt_to_mesh(config, mesh),
          sharding.place_rows(batch, mesh), weight_BSD), expected)


def test_a_kernel_of_another_platform_is_refused():
  config = transformer.DecoderConfig(vocab_size=32, d_model=16, n_layers=1, n_heads=2, n_kv_heads=2,
                                     head_dim=8, d_ff=16, attention="cudnn", dtype="bfloat16")
  with pytest.raises(ValueError, match="model.attention='cudnn': blocks; cudnn needs a GPU"):
    build_models.adapt_to_mesh(config, sharding.make_mesh())
