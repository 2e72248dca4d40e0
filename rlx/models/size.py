"""Bytes and operations of a decoder, from its DecoderConfig alone."""
import dataclasses

import jax.numpy as jnp


def param_count(config):
  """Numbers in the parameter tree of `transformer.init`."""
  c = config
  heads = c.n_heads + 2 * c.n_kv_heads  # of q, k and v
  each = _matmul_params(c, c.n_experts or 1)
  layer = each + c.d_model * {"pre": 2, "post": 2, "both": 4}[c.norms]
  layer += c.qkv_bias * heads * c.head_dim + c.o_bias * c.d_model
  layer += c.mlp_bias * (2 * c.d_ff + c.d_model)
  layer += c.head_dim * {None: 0, "head": 2, "all": c.n_heads + c.n_kv_heads}[c.qk_norm]
  tables = c.vocab_size * c.d_model * (1 if c.tied_head else 2)
  return tables + c.n_layers * layer + c.d_model


def part(config, n):
  """A device's part of a decoder whose heads, units and vocabulary n devices share."""
  c = config
  return dataclasses.replace(
      c, n_heads=c.n_heads // n, n_kv_heads=c.n_kv_heads // n, d_ff=c.d_ff // n,
      vocab_size=c.vocab_size // n)


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
  `context` positions, also where the causal mask drops half of them.

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


def update_bytes(config, rows, width, scored, *, param_bytes, chunk=1024):
  """Upper estimate of what an optimizer step takes beside its arguments.

    3 param_bytes                  gradients, their sum, updates, in float32
    + L saved + 1 to 1.5 layer     what backward reads; the layer it is in
    + 4 (4 chunk V)                logits, probabilities, their gradients

  layer = 4 rows width (8 D + 4 F + 4 (N + 2 K) H + 2 N width) is everything that
  one computes; saved is that without remat, its input with "full", and with
  "dots" also the outputs of its matrices. In float32 whatever the activations:
  XLA may keep bfloat16 wider, and does on CPU.

  Source: the terms were fitted to `memory_analysis()` of XLA on CPU.

  Args:
    config: DecoderConfig.
    rows, width: of a microbatch, [B, S].
    scored: completion tokens of a microbatch.
    param_bytes: of the parameters on a device, had they 4 bytes each.
    chunk: tokens whose logits exist at once, see `logps.of_hidden`.
  """
  c = config
  layer = layer_bytes(c, rows, width, width)
  matrices = 2 * c.d_model + 2 * _units(c) + (c.n_heads + 2 * c.n_kv_heads) * c.head_dim
  saved = {"none": layer, "full": 4 * rows * width * c.d_model,
           "dots": 4 * rows * width * (c.d_model + matrices)}[c.remat]
  working = layer if c.remat == "none" else 3 * layer // 2  # Computed again.
  return (3 * param_bytes + c.n_layers * saved + working
          + 16 * min(chunk, scored) * c.vocab_size)


def forward_bytes(config, rows, width, scored, *, chunk=1024):
  """Upper estimate of what scoring takes beside its arguments; see `update_bytes`.

    4 rows width (4 D + max(2 N width, 3 F)) + 4 chunk V + 4 (matrices of a layer)

  The last because a layer's weights are sliced from the stack.
  """
  c = config
  widest = max(2 * c.n_heads * width, 3 * _units(c))
  return 4 * (rows * width * (4 * c.d_model + widest)
              + min(chunk, scored) * c.vocab_size
              + _matmul_params(c, c.n_experts or 1))


def layer_bytes(c, rows, width, keys):
  """Everything that a layer computes of [rows, width] tokens that meet so many keys, in
  float32."""
  projections = (c.n_heads + 2 * c.n_kv_heads) * c.head_dim
  return 4 * rows * width * (8 * c.d_model + 4 * _units(c) + 4 * projections
                             + 2 * c.n_heads * keys)


def _units(c):
  """Units of the MLPs that a token goes through."""
  return c.d_ff * (c.experts_per_token or 1)


def _matmul_params(c, mlps=None):
  """Parameters of a layer that are multiplied with every token, or with `mlps` experts."""
  attention = (2 * c.n_heads + 2 * c.n_kv_heads) * c.head_dim * c.d_model
  if mlps is None: mlps = c.experts_per_token or 1
  return attention + c.d_model * (c.n_experts + 3 * mlps * c.d_ff)
