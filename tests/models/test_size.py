"""Closed forms against the trees that jax makes and the operations that XLA counts."""
import dataclasses
import functools

import jax
import numpy as np
import pytest

from rlx.models import size, transformer

CONFIG = transformer.DecoderConfig(
    vocab_size=31, d_model=16, n_layers=3, n_heads=4, n_kv_heads=2, head_dim=6, d_ff=24)


def test_a_token_passes_through_its_experts_only():
  """Of 8 experts with 2 a token: 2 matrices of 3 D F, and the router."""
  mixed = dataclasses.replace(CONFIG, n_experts=8, experts_per_token=2)
  flops = [size.forward_flops_per_token(c, 10) for c in (CONFIG, mixed)]
  assert flops[1] - flops[0] == 2 * 3 * (3 * 16 * 24 + 16 * 8)  # 3 layers.


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_cache_is_that_of_prefill(dtype):
  config = dataclasses.replace(CONFIG, dtype=dtype)
  tokens_PX = np.zeros((5, 7), np.int32)
  params = jax.eval_shape(functools.partial(transformer.init, config), jax.random.key(0))
  keys_and_values = jax.eval_shape(
      lambda p: transformer.prefill(p, config, tokens_PX, tokens_PX, tokens_PX == 0), params)
  assert (sum(x.size * x.dtype.itemsize for x in keys_and_values)
          == 5 * 7 * size.kv_bytes_per_token(config))


@pytest.mark.parametrize("with_head", [True, False])
def test_operations_are_those_that_xla_counts(with_head):
  """One layer, as XLA counts the body of a loop once; another for the rest."""
  config = transformer.DecoderConfig(
      vocab_size=512, d_model=128, n_layers=1, n_heads=4, n_kv_heads=2, head_dim=32,
      d_ff=384)
  b, s = 2, 64
  tokens_BS = np.zeros((b, s), np.int32)
  params = jax.eval_shape(functools.partial(transformer.init, config), jax.random.key(0))
  def forward(params):
    h = transformer.hidden(params, config, tokens_BS, tokens_BS, tokens_BS == 0)
    return transformer.logits(params, config, h) if with_head else h
  counted = jax.jit(forward).lower(params).cost_analysis()["flops"] / (b * s)
  closed = size.forward_flops_per_token(config, s, with_head=with_head)
  # What XLA counts besides is norms, softmax, rotary angles and the embedding.
  assert 0 < counted / closed - 1 < 0.03
  two = size.forward_flops_per_token(
      dataclasses.replace(config, n_layers=2), s, with_head=with_head)
  assert two - closed == size.forward_flops_per_token(config, s, with_head=False)
