"""The decoder against a float64 numpy reference."""
import dataclasses
import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.models import transformer

P, G, X, T = 2, 3, 5, 4
# Key-value heads are shared by query heads, and head_dim is not d_model / heads.
CONFIG = transformer.DecoderConfig(
    vocab_size=31, d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=6,
    d_ff=24, qkv_bias=True, qk_norm="head", tied_head=False,
    rope_scaling=("llama3", 4.0, 1.0, 4.0, 64))


@functools.partial(jax.jit, static_argnums=1)
def hidden(params, config, *batch):
  return transformer.hidden(params, config, *batch)


@pytest.fixture(scope="module")
def params():
  """Random in every leaf: norms start at one, biases at zero."""
  params = transformer.init(CONFIG, jax.random.key(0))
  noise = np.random.default_rng(0)
  return jax.tree.map(
      lambda x: x + 0.1 * noise.normal(size=x.shape).astype(np.float32), params)


@pytest.fixture(scope="module")
def batch():
  """tokens, positions, valid [P*G, X+T]: prompts of 3 and 5 tokens, then T."""
  start = np.repeat([2, 0], G)[:, None]
  columns = np.arange(X + T)[None, :]
  tokens = np.random.default_rng(0).integers(0, 31, (P * G, X + T))
  tokens[:, :X] = np.repeat(tokens[::G, :X], G, axis=0)
  return (jnp.asarray(tokens), jnp.asarray(np.maximum(columns - start, 0)),
          jnp.asarray(columns >= start))


def reference(params, config, tokens):
  """Hidden states of one unpadded sequence: float64, loops, no jax."""
  p = jax.tree.map(lambda x: np.asarray(x, np.float64), params)
  norm = lambda x, scale: x / np.sqrt(
      (x**2).mean(-1, keepdims=True) + config.norm_eps) * scale
  half = config.head_dim // 2

  def frequency(i):
    f = config.rope_theta ** (-i / half)
    _, factor, low, high, original = config.rope_scaling
    wavelength = 2 * np.pi / f
    if wavelength < original / high: return f
    if wavelength > original / low: return f / factor
    smooth = (original / wavelength - low) / (high - low)
    return (1 - smooth) * f / factor + smooth * f

  def rotate(x, position):
    out = np.empty_like(x)
    for i in range(half):
      angle = position * frequency(i)
      a, b = x[i], x[i + half]
      out[i] = a * np.cos(angle) - b * np.sin(angle)
      out[i + half] = b * np.cos(angle) + a * np.sin(angle)
    return out

  x = p["embed"]["w_VD"][tokens]
  n = len(tokens)
  for layer in range(config.n_layers):
    w = jax.tree.map(lambda leaf, layer=layer: leaf[layer], p["layers"])
    y, attn = norm(x, w["attn_norm"]["scale_LD"]), w["attn"]
    out = np.zeros_like(x)
    for head in range(config.n_heads):
      kv = head // (config.n_heads // config.n_kv_heads)
      q = y @ attn["q_LDNH"][:, head] + attn["q_bias_LNH"][head]
      k = y @ attn["k_LDKH"][:, kv] + attn["k_bias_LKH"][kv]
      v = y @ attn["v_LDKH"][:, kv] + attn["v_bias_LKH"][kv]
      q = norm(q, attn["q_norm"]["scale_LH"])
      k = norm(k, attn["k_norm"]["scale_LH"])
      q = np.stack([rotate(q[i], i) for i in range(n)])
      k = np.stack([rotate(k[i], i) for i in range(n)])
      for i in range(n):
        weights = np.exp(k[:i + 1] @ q[i] / np.sqrt(config.head_dim))
        out[i] += weights @ v[:i + 1] / weights.sum() @ attn["o_LNHD"][head]
    x = x + out
    y, mlp = norm(x, w["mlp_norm"]["scale_LD"]), w["mlp"]
    gate = y @ mlp["gate_LDF"]
    x = x + (gate / (1 + np.exp(-gate)) * (y @ mlp["up_LDF"])) @ mlp["down_LFD"]
  return norm(x, p["norm"]["scale_D"])


def test_against_numpy(params, batch):
  tokens, _, valid = map(np.asarray, batch)
  hidden_BSD = hidden(params, CONFIG, *batch)
  for b in (0, G):  # One row of each prompt.
    expected = reference(params, CONFIG, tokens[b, valid[b]])
    np.testing.assert_allclose(hidden_BSD[b][valid[b]], expected, atol=5e-6, rtol=0)


def test_logits_separate_and_tied(params):
  h = np.random.default_rng(0).normal(size=(2, 3, 16)).astype(np.float32)
  np.testing.assert_allclose(transformer.logits(params, CONFIG, h),
                             h @ np.asarray(params["head"]["w_DV"]), atol=1e-5)
  tied = dataclasses.replace(CONFIG, tied_head=True)
  np.testing.assert_allclose(transformer.logits(params, tied, h),
                             h @ np.asarray(params["embed"]["w_VD"]).T, atol=1e-5)


def test_padding_reaches_nothing(params, batch):
  tokens, positions, valid = batch
  valid = valid.at[:, -1].set(False)  # Padding on the right as well.
  other = jnp.where(valid, tokens, (tokens + 7) % 31)
  a, b = (np.asarray(hidden(params, CONFIG, x, positions, valid))
          for x in (tokens, other))
  assert np.abs(a - b).max() > 0.1  # The padding did change.
  np.testing.assert_array_equal(a[valid], b[valid])


def test_row_without_valid_token_stays_finite(params, batch):
  tokens, positions, valid = (x[::G, :4] for x in batch)
  loss = lambda p: jnp.mean(transformer.hidden(
      p, CONFIG, tokens, positions, valid.at[0].set(False)) ** 3)
  assert all(bool(jnp.isfinite(x).all()) for x in jax.tree.leaves(jax.jit(jax.grad(loss))(params)))


@pytest.mark.parametrize("segment", [150, 70])
def test_long_rows_and_segments_against_the_reference(params, segment):
  """Three blocks of queries; each segment is computed as if it were alone."""
  tokens, columns = np.random.default_rng(0).integers(0, 31, 150), np.arange(150)
  hidden_SD = hidden(params, CONFIG, tokens[None], columns[None] % segment,
                     np.ones((1, 150), bool), columns[None] // segment)[0]
  for start in range(0, 150, segment):
    part = slice(start, start + segment)
    np.testing.assert_allclose(hidden_SD[part], reference(params, CONFIG, tokens[part]),
                               atol=2e-5)


def test_float64_stays_float64():
  """Nothing inside falls back to float32."""
  with jax.enable_x64(True):
    config = dataclasses.replace(CONFIG, dtype="float64", param_dtype="float64")
    params = transformer.init(config, jax.random.key(0))
    tokens = np.arange(7) % 31
    h = hidden(params, config, tokens[None], np.arange(7)[None], np.ones((1, 7), bool))
    np.testing.assert_allclose(h[0], reference(params, config, tokens), atol=1e-13)


def test_init():
  """Shapes without data, the published size of SmolLM2-135M, scale of the matrices."""
  smollm2 = transformer.DecoderConfig(
      vocab_size=49152, d_model=576, n_layers=30, n_heads=9, n_kv_heads=3,
      head_dim=64, d_ff=1536, param_dtype="bfloat16")
  tree = jax.eval_shape(functools.partial(transformer.init, smollm2),
                        jax.random.key(0))
  assert sum(x.size for x in jax.tree.leaves(tree)) == 134_515_008
  assert {x.dtype for x in jax.tree.leaves(tree)} == {jnp.dtype("bfloat16")}
  assert tree["layers"]["attn"]["q_LDNH"].shape == (30, 576, 9, 64)
  wide = dataclasses.replace(CONFIG, d_model=64, d_ff=256)
  mlp = transformer.init(wide, jax.random.key(0))["layers"]["mlp"]
  assert abs(np.std(mlp["up_LDF"]) * 8 - 1) < 0.02    # 1 / sqrt(64)
  assert abs(np.std(mlp["down_LFD"]) * 16 - 1) < 0.02  # 1 / sqrt(256)
  assert np.abs(mlp["up_LDF"][0] - mlp["up_LDF"][1]).max() > 0.1  # Layers differ.


@pytest.mark.parametrize("change, message", [
    (dict(n_kv_heads=3), "n_kv_heads=3 must divide"),
    (dict(remat="some"), "remat='some'"),
    (dict(rope_scaling=("yarn", 4.0)), "yarn"),
    (dict(norms="sandwich"), "norms='sandwich' must be one of.*both"),
    (dict(qk_norm=True), "qk_norm=True must be one of.*head"),
    (dict(windows=(4,)), r"windows=\(4,\) must be n_layers=2 numbers"),
    (dict(windows=(4, 0), attention="splash"), "splash.*no windows"),
    (dict(attn_softcap=5.0, attention="cudnn"), "cudnn.*no soft cap"),
])
def test_config_refuses(change, message):
  with pytest.raises(ValueError, match=message):
    dataclasses.replace(CONFIG, **change)


@pytest.mark.parametrize("scaling, max_positions", [
    (None, 64), (("linear", 4.0), 64), (("llama3", 8.0, 1.0, 4.0, 16), 64),
    (("yarn", 4.0, 32.0, 1.0, 32, 1.0, True), 128), (("dynamic", 2.0, 64), 128),
    (("yarn", 4.0, 32.0, 1.0, 8, 1.0, True), 64)])
def test_max_positions(scaling, max_positions):
  """Files of yarn and dynamic may give the context before or after it was stretched."""
  config = dataclasses.replace(CONFIG, context=64, rope_scaling=scaling)
  assert config.max_positions == max_positions
  assert dataclasses.replace(config, context=None).max_positions is None


def test_nnx_is_not_imported():
  subprocess.run([sys.executable, "-c", "import sys, rlx.models.logps\n"
                  "assert not any(m.startswith('flax.nnx') for m in sys.modules)"],
                 check=True)
