"""Adapters change nothing at first, and then equal the merged matrices."""
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records
from rlx.models import decode, lora, transformer, value
from tests import tiny

CONFIG = transformer.DecoderConfig(
    vocab_size=31, d_model=16, n_layers=2, n_heads=4, n_kv_heads=2, head_dim=6,
    d_ff=24, qkv_bias=True, qk_norm="head", tied_head=True, lora_scale=0.5)
KEY = jax.random.key(1)
hidden = jax.jit(transformer.hidden, static_argnums=1)
merge = jax.jit(lora.merge, static_argnums=1)
init = jax.jit(lora.init, static_argnames=("rank", "targets"))


def shapes(params, **options):
  return jax.eval_shape(functools.partial(lora.init, **options), params, KEY)


@pytest.fixture(scope="module")
def trees():
  """(frozen, adapters at the start, adapters after some training)."""
  frozen, noise = tiny.draw_decoder(CONFIG), np.random.default_rng(2)
  start = jax.device_get(init(frozen, KEY, rank=3))
  moved = jax.tree.map(lambda x: x + 0.3 * noise.normal(size=x.shape).astype(np.float32), start)
  return frozen, start, moved


BATCH = np.arange(10).reshape(2, 5), np.tile(np.arange(5), (2, 1)), np.ones((2, 5), bool)


def test_adapters_change_nothing_at_first(trees):
  frozen, start, _ = trees
  np.testing.assert_array_equal(hidden(frozen, CONFIG, *BATCH),
                                hidden(records.join(frozen, start), CONFIG, *BATCH))


def test_adapters_are_float32_over_narrower_matrices(trees):
  """So is the sum: one update of an adapter changes far less than 2^-9 of a matrix."""
  frozen, _, moved = trees
  narrow = jax.tree.map(lambda x: x.astype(jnp.bfloat16), frozen)
  start = shapes(narrow, rank=3)
  assert {x.dtype for x in jax.tree.leaves(start)} == {jnp.float32.dtype}
  with_head = jax.eval_shape(functools.partial(
      value.init, dataclasses.replace(CONFIG, param_dtype="bfloat16")), start)
  assert {x.dtype for x in jax.tree.leaves(with_head)} == {jnp.float32.dtype}
  small = jax.tree.map(lambda x: x * 2**-6, moved)  # Of both A and B: of the sum 2^-12.
  merged = merge(records.join(narrow, small), 0.5)
  up, part = narrow["layers"]["mlp"]["up_LDF"], small["layers"]["mlp"]
  np.testing.assert_allclose(
      merged["layers"]["mlp"]["up_LDF"], np.float32(up) + 0.5 * np.einsum(
          "LDI,LIF->LDF", part["up_a_LDI"], part["up_b_LIF"]), atol=1e-7)


def test_joined_equals_merged_and_by_hand(trees):
  frozen, _, moved = trees
  joined = records.join(frozen, moved)
  merged = jax.device_get(merge(joined, CONFIG.lora_scale))
  assert jax.tree.structure(merged) == jax.tree.structure(frozen)
  for kind, name, a, b in (("mlp", "down_LFD", "down_a_LFI", "down_b_LID"),
                           ("attn", "q_LDNH", "q_a_LDI", "q_b_LINH")):
    before, after, adapter = (tree["layers"][kind] for tree in (frozen, merged, moved))
    axes = [x.rpartition("_")[2] for x in (a, b, name)]
    change = 0.5 * np.einsum("{},{}->{}".format(*axes), adapter[a], adapter[b])
    np.testing.assert_allclose(after[name], before[name] + change, atol=1e-6)
  adapted, plain = (np.asarray(hidden(p, CONFIG, *BATCH)) for p in (joined, frozen))
  np.testing.assert_allclose(adapted, hidden(merged, CONFIG, *BATCH), atol=1e-5)
  assert np.abs(adapted - plain).max() > 0.1


def test_decoding_reads_adapters(trees):
  frozen, _, moved = trees
  joined = records.join(frozen, moved)
  laid = decode.lay_out(joined, CONFIG)
  expected = decode.lay_out(merge(joined, 0.5), CONFIG)
  jax.tree.map(np.testing.assert_array_equal, laid, expected)


def test_gradient_is_that_of_the_merged_matrices(trees):
  """da = scale dw b^T and db = scale a^T dw, with remat; frozen matrices have no gradient."""
  frozen, _, moved = trees
  config = dataclasses.replace(CONFIG, remat="full")
  loss = lambda params: jnp.sum(transformer.hidden(params, config, *BATCH) ** 3)
  gradients = jax.jit(jax.grad(lambda t: loss(records.join(frozen, t))))(moved)
  assert jax.tree.structure(gradients) == jax.tree.structure(moved)
  dw = jax.jit(jax.grad(loss))(merge(records.join(frozen, moved), 0.5))
  dw, part = dw["layers"]["mlp"]["up_LDF"], moved["layers"]["mlp"]
  for name, expected in (
      ("up_a_LDI", 0.5 * np.einsum("LDF,LIF->LDI", dw, part["up_b_LIF"])),
      ("up_b_LIF", 0.5 * np.einsum("LDI,LDF->LIF", part["up_a_LDI"], dw))):
    scale = np.abs(expected).max()
    np.testing.assert_allclose(gradients["layers"]["mlp"][name], expected, atol=2e-5 * scale)


def test_experts_have_no_adapters():
  config = dataclasses.replace(CONFIG, n_experts=3, experts_per_token=2)
  params = jax.eval_shape(functools.partial(transformer.init, config), KEY)
  assert set(shapes(params, rank=2)["layers"]) == {"attn"}
  with pytest.raises(ValueError, match="targets=.*gate.*none of them"):
    shapes(params, rank=2, targets=("gate", "up"))


def test_targets_and_sizes(trees):
  frozen = trees[0]
  some = shapes(frozen, rank=2, targets=("q", "down"))
  assert {k for part in some["layers"].values() for k in part} == {
      "q_a_LDI", "q_b_LINH", "down_a_LFI", "down_b_LID"}
  a = init(frozen, KEY, rank=64, targets=("o",))["layers"]["attn"]["o_a_LNHI"]
  assert a.shape == (2, 4, 6, 64) and abs(np.std(a) * 24**0.5 - 1) < 0.1
  with pytest.raises(ValueError, match="w_VD"):
    shapes(frozen, rank=2, targets=("w_VD",))
