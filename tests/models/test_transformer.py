"""Properties of the decoder; test_parity.py compares its numbers with transformers."""
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.models import transformer
from tests import tiny

# Key-value heads are shared by query heads, and head_dim is not d_model / heads.
CONFIG = transformer.DecoderConfig(
    vocab_size=31, d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=6,
    d_ff=24, qkv_bias=True, qk_norm="head", tied_head=False,
    rope_scaling=("llama3", 4.0, 1.0, 4.0, 64))
hidden = jax.jit(transformer.hidden, static_argnums=1)


@pytest.fixture(scope="module")
def params():
  return tiny.draw_decoder(CONFIG)


def test_row_without_valid_token_stays_finite(params):
  tokens, positions = np.arange(8).reshape(2, 4), np.arange(4) + np.zeros((2, 1), int)
  valid = np.array([[False] * 4, [True] * 4])
  loss = lambda p: jnp.mean(transformer.hidden(p, CONFIG, tokens, positions, valid) ** 3)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(jax.jit(jax.grad(loss))(params)))


def test_a_segment_is_computed_as_if_it_were_alone(params):
  """Of a row with three blocks of queries."""
  tokens, columns = np.random.default_rng(0).integers(0, 31, 141), np.arange(141)
  hidden_BSD = np.asarray(hidden(params, CONFIG, tokens[None], columns[None] % 47,
                                 np.ones((1, 141), bool), columns[None] // 47))
  alone_BSD = hidden(params, CONFIG, tokens.reshape(3, 47), np.tile(columns[:47], (3, 1)),
                     np.ones((3, 47), bool))
  np.testing.assert_allclose(hidden_BSD.reshape(alone_BSD.shape), alone_BSD, atol=2e-5)


def test_float64_stays_float64():
  """Nothing inside falls back to float32."""
  with jax.enable_x64(True):
    config = dataclasses.replace(CONFIG, dtype="float64", param_dtype="float64")
    params = transformer.init(config, jax.random.key(0))
    columns_1S = np.arange(7)[None]
    program = str(jax.make_jaxpr(lambda p: transformer.hidden(
        p, config, columns_1S, columns_1S, columns_1S >= 0))(params))
    assert "f64" in program and "f32" not in program


def test_init():
  """Shapes without data, the published size of SmolLM2-135M, scale of the matrices."""
  smollm2 = transformer.DecoderConfig(
      vocab_size=49152, d_model=576, n_layers=30, n_heads=9, n_kv_heads=3,
      head_dim=64, d_ff=1536, param_dtype="bfloat16")
  tree = jax.eval_shape(functools.partial(transformer.init, smollm2), jax.random.key(0))
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
    (dict(windows=(4, 0), attention="splash"), "splash.*one window for all layers, not .0, 4."),
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
