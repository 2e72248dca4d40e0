"""Bytes and operations of a decoder, from its DecoderConfig alone."""
import jax.numpy as jnp


def param_count(config):
  """Numbers in the parameter tree of `transformer.init`."""
  c = config
  heads = c.n_heads + 2 * c.n_kv_heads              # of q, k and v
  layer = _matmul_params(c) + 2 * c.d_model         # and two norms
  if c.qkv_bias: layer += heads * c.head_dim
  if c.qk_norm: layer += 2 * c.head_dim
  tables = c.vocab_size * c.d_model * (1 if c.tied_head else 2)
  return tables + c.n_layers * layer + c.d_model


def param_bytes(config):
  """Bytes of the parameters in `config.param_dtype`."""
  return param_count(config) * jnp.dtype(config.param_dtype).itemsize


def kv_bytes_per_token(config):
  """Bytes that one position of one row takes in the key-value cache."""
  return (2 * config.n_layers * config.n_kv_heads * config.head_dim
          * jnp.dtype(config.dtype).itemsize)


def forward_flops_per_token(config, context, *, with_head=True):
  """Floating-point operations of a forward pass, per token.

    2 (matmul parameters) + 4 L N H context [+ 2 D V]

  A multiply-add counts as two. Matrix products only: norms, softmax and rotary
  angles are left out, a few per cent in decoders of any real size.

  Source: the definition. Differs from the papers: attention is counted over all
  `context` positions, as computed, also where the causal mask drops half of them.

  Args:
    config: DecoderConfig.
    context: positions that a token's query meets: S in training and prefill,
      the width of the cache in decoding.
    with_head: also the logits.
  """
  c = config
  attention = 4 * c.n_heads * c.head_dim * context
  head = 2 * c.d_model * c.vocab_size if with_head else 0
  return c.n_layers * (2 * _matmul_params(c) + attention) + head


def _matmul_params(c):
  """Parameters of a layer that are multiplied with every token."""
  attention = (2 * c.n_heads + 2 * c.n_kv_heads) * c.head_dim * c.d_model
  return attention + 3 * c.d_model * c.d_ff
