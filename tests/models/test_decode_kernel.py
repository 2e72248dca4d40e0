"""The fused kernel of decoding, interpreted, against `decode._attend_parts`."""
import dataclasses
import functools
import re

import jax
import numpy as np
import pytest

from rlx.models import decode, decode_kernel, transformer
from tests import tiny

CONFIG = transformer.DecoderConfig(
    vocab_size=31, d_model=16, n_layers=1, n_heads=6, n_kv_heads=2, head_dim=16, d_ff=24,
    qkv_bias=True, platform="cpu")


def step(config, groups, group, x, t, column):
  """Logits and suffix of a step of rows with random caches and lengths, some of them empty."""
  rng, rows = np.random.default_rng(1), groups * group
  array = lambda *shape: rng.normal(size=shape).astype(config.dtype)
  k, h = config.n_kv_heads, config.head_dim
  valid_PX = np.arange(x) >= np.array([0, x - 1, *rng.integers(0, x, groups)])[:groups, None]
  valid_PX[:, -1] = False
  prompts = [array(groups, k, h, x)], [array(groups, k, x, h)], valid_PX
  suffix = [array(rows, k, h, t)], [array(rows, k, t, h)]
  start_W = np.array([0, column, *rng.integers(0, column + 1, rows)])[:rows]
  live_WT = (np.arange(t) >= start_W[:, None]) & (np.arange(t) <= column)
  positions_W = np.repeat(valid_PX.sum(1), group) + column - start_W
  tiles = lambda layers: [decode._tile(config, layers[0])]
  @functools.partial(jax.jit, static_argnums=1)
  def run(params, config, prompts, suffix):
    logits_WV, suffix = decode.step(
        decode.lay_out(params, config), config, np.arange(rows), positions_W.astype(np.int32),
        decode.Prompts(tiles(prompts[0]), *prompts[1:]), decode.Suffix(tiles(suffix[0]), suffix[1]),
        live_WT, np.int32(column))
    return logits_WV, decode._untile(suffix.k_WKnHt[0], t), suffix.v_WKTH[0]
  params = tiny.draw_decoder(dataclasses.replace(config, dtype="float32"))
  return [np.asarray(x, np.float32) for x in run(params, config, prompts, suffix)]


@pytest.mark.parametrize("changes, sizes", [
    ({}, (2, 3, 70, 130, 127)),                                  # several blocks, the last cut
    (dict(n_heads=1, n_kv_heads=1, windows=(3,)), (1, 2, 128, 8, 5)),  # within suffix and prompt
    (dict(attn_softcap=2.0, qk_norm="head"), (2, 1, 5, 64, 0)),  # the first token of a suffix
    (dict(n_heads=34, windows=(40,)), (2, 2, 64, 33, 32))], ids=str)  # 17 queries a head
def test_equals_attention_in_parts(changes, sizes):
  config = dataclasses.replace(CONFIG, **changes)
  fused = step(dataclasses.replace(config, decoding="fused"), *sizes)
  for x, expected in zip(fused, step(config, *sizes), strict=True):
    np.testing.assert_allclose(x, expected, atol=2e-5)


def test_rounds_as_attention_in_parts():
  sizes = (2, 3, 70, 130, 100)
  exact, *rounded = (step(dataclasses.replace(CONFIG, **changes), *sizes)[0] for changes in (
      {}, dict(dtype="bfloat16"), dict(dtype="bfloat16", decoding="fused")))
  parts, fused = (np.std(x - exact) / np.std(exact) for x in rounded)
  assert 1e-4 < fused < 1.3 * parts < 0.05


@pytest.mark.parametrize("changes, reason", [
    ({}, None), (dict(dtype="float32"), "needs model.dtype=bfloat16, not float32"),
    (dict(head_dim=96), "needs head_dim to be a power of 2 from 16 to 256, not 96"),
    (dict(devices=2), "needs mesh.tensor=1")])
def test_what_the_kernel_lacks_is_said(changes, reason):
  assert decode_kernel.lacks(**dict(head_dim=64, dtype="bfloat16", devices=1) | changes) == reason


def test_a_run_tries_the_kernel_before_it_relies_on_it(monkeypatch):
  assert decode_kernel.find_fault(group=2, head_dim=16, interpret=True) is None
  assert re.match(r"does not compile here \(ValueError: Only interpret mode",
                  decode_kernel.find_fault(group=2, head_dim=16))
  def forget_the_prompt(qkv, k, v, *rest, **options):
    return qkv[:, :, :-2] * 0, *rest[:2]
  monkeypatch.setattr(decode_kernel, "attend", forget_the_prompt)
  assert re.match(r"is wrong by \d", decode_kernel.find_fault(group=2, head_dim=16))
