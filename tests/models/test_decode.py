"""One token per row against whole sequences."""
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.models import decode, transformer
from tests import tiny

P, G, X, T = 2, 3, 5, 4
CONFIG = transformer.DecoderConfig(
    vocab_size=31, d_model=16, n_layers=1, n_heads=4, n_kv_heads=2, head_dim=6,
    d_ff=24, qkv_bias=True, qk_norm="head", tied_head=False,
    rope_scaling=("llama3", 8.0, 1.0, 4.0, 16))


PLAIN = dataclasses.replace(CONFIG, qkv_bias=False, qk_norm=None, tied_head=True, n_kv_heads=4,
                            rope_scaling=None)
# The window ends within prompts and suffixes. test_parity.py decodes the other kinds of models.
WINDOW = dataclasses.replace(PLAIN, n_layers=2, no_rope=(1,), windows=(0, 2))


@pytest.mark.parametrize("config", [CONFIG, WINDOW], ids=["qwen", "window"])
def test_equals_whole_sequences(config):
  """Teacher-forced, ragged prompts that are shared, suffixes of different ages."""
  params = tiny.draw_decoder(config)
  tokens_BS = np.random.default_rng(0).integers(0, 31, (P * G, X + T))
  tokens_BS[:, :X] = np.repeat(tokens_BS[::G, :X], G, axis=0)
  len_P = np.array([X, 2], np.int32)
  start_B1 = X - np.repeat(len_P, G)[:, None]
  columns_1S = np.arange(X + T)[None]
  # Compiled anew for each call, because the size of tiles is not an argument.
  width = T + 2  # Two columns that no row uses; their values must not matter.
  @jax.jit
  def start(params):
    hidden = transformer.hidden(
        params, config, tokens_BS, np.maximum(columns_1S - start_B1, 0), columns_1S >= start_B1)
    suffix = jax.tree.map(lambda x: x + 9.0, decode.empty_suffix(config, P * G, width))
    return (transformer.logits(params, config, hidden), decode.lay_out(params, config),
            decode.prompts(params, config, tokens_BS[::G, :X], len_P), suffix)
  logits, weights, prompts, suffix = start(params)
  expected = np.asarray(logits)
  assert prompts.k_PKnHx[0].shape[:4] == (P, config.n_kv_heads, decode._tiles(config, X)[0], 6)
  step = jax.jit(functools.partial(decode.step), static_argnums=1)
  for t in range(T):
    column = t + 2
    live_WT = np.broadcast_to((np.arange(width) >= 2) & (np.arange(width) <= column),
                              (P * G, width))
    logits_WV, suffix = step(
        weights, config, tokens_BS[:, X - 1 + t], np.repeat(len_P, G) - 1 + t, prompts, suffix,
        live_WT, column)
    np.testing.assert_allclose(logits_WV, expected[:, X - 1 + t], atol=2e-5)


def test_tiles_of_keys_do_not_matter(monkeypatch):
  """The prompts' 5 columns are two tiles of 3, one column of which is unused."""
  monkeypatch.setitem(decode._TILE, transformer.platform(PLAIN), 4)
  assert decode._tiles(PLAIN, X) == (2, 3)
  test_equals_whole_sequences(PLAIN)


def test_moved_rows_keep_their_columns(monkeypatch):
  monkeypatch.setitem(decode._TILE, transformer.platform(PLAIN), 2)
  rng = np.random.default_rng(0)
  k_WKHT, v_WKTH = rng.normal(size=(3, 2, 4, 7)), rng.normal(size=(3, 2, 7, 4))
  @jax.jit
  def move(k_WKHT, v_WKTH):
    moved = decode.move_rows(decode.Suffix([decode._tile(PLAIN, k_WKHT)], [v_WKTH]), PLAIN,
                             np.array([2, 0]), 5, width=6, free=2)
    return moved, decode._untile(moved.k_WKnHt[0], 8)
  moved, k_WKHT_moved = move(k_WKHT, v_WKTH)
  np.testing.assert_array_equal(moved.v_WKTH[0], np.pad(
      v_WKTH[[2, 0], :, :5].astype("float32"), [(0, 0), (0, 0), (1, 2), (0, 0)]))
  np.testing.assert_array_equal(k_WKHT_moved, np.pad(
      k_WKHT[[2, 0], ..., :5].astype("float32"), [(0, 0), (0, 0), (0, 0), (1, 2)]))
  assert moved.k_WKnHt[0].shape == (2, 2, 4, 4, 2)


def test_bfloat16_is_close():
  config = dataclasses.replace(CONFIG, dtype="bfloat16")
  params = tiny.draw_decoder(CONFIG)
  args = np.arange(2), np.zeros(2, np.int32)
  @functools.partial(jax.jit, static_argnums=1)
  def logits(params, c):
    prompts = decode.prompts(params, c, np.ones((2, 3), np.int32), np.array([3, 2]))
    return decode.step(decode.lay_out(params, c), c, *args, prompts,
                       decode.empty_suffix(c, 2, 4), np.eye(4, dtype=bool)[:2] | True, 0)[0]
  computed, expected = (np.asarray(logits(params, c)) for c in (config, CONFIG))
  assert computed.dtype == np.float32
  laid_out = jax.eval_shape(lambda: decode.lay_out(params, config))
  assert laid_out["layers"][0]["down_DF"].dtype == jnp.bfloat16
  error = np.std(computed - expected) / np.std(expected)
  assert 1e-4 < error < 0.05
