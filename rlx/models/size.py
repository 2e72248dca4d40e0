"""Bytes and operations of a decoder, estimated from its DecoderConfig."""
import dataclasses
import functools

import jax
import jax.numpy as jnp

from rlx.models import transformer


@functools.cache
def param_count(config):
  """Number of parameters that `transformer.init` makes."""
  shapes = jax.eval_shape(functools.partial(transformer.init, config), jax.random.key(0))
  return sum(x.size for x in jax.tree.leaves(shapes))


def part(config, n):
  """The config of one device's shard of a decoder, with heads, d_ff and vocabulary over n."""
  c = config
  return dataclasses.replace(
      c, n_heads=c.n_heads // n, n_kv_heads=max(c.n_kv_heads // n, 1), kv_copies=1, d_ff=c.d_ff // n,
      vocab_size=c.vocab_size // n)


def kv_bytes_per_token(config):
  """Bytes of one position of one row in the key-value cache."""
  return (2 * config.n_layers * config.kv_heads * config.head_dim
          * jnp.dtype(config.dtype).itemsize)


def forward_flops_per_token(config, context, *, with_head=True):
  """Floating-point operations of a forward pass, per token.

    2 (matmul parameters) + 4 L N H context [+ 2 D V]

  A multiply-add counts as two. Only matrix products count; norms, softmax and rotary angles are
  a few per cent in decoders of realistic size.

  Source: the definition. Differs from the papers: attention is counted over all
  `context` positions, although the causal mask excludes half of them.

  Args:
    config: DecoderConfig.
    context: keys per query: S in training and prefill, the width of the cache in decoding.
    with_head: whether the logits count.
  """
  c = config
  attention = 4 * c.n_heads * c.head_dim * context
  head = 2 * c.d_model * c.vocab_size if with_head else 0
  return c.n_layers * (2 * _matmul_params(c) + attention) + head


def update_bytes(config, rows, width, scored, *, param_bytes, chunk=1024):
  """Upper estimate of the memory of an optimizer step, without its arguments.

    3 param_bytes                  gradients, their sum, updates, in float32
    + L saved + 1 to 1.5 layer     what backward reads; the layer in progress
    + 4 (4 chunk V)                logits, probabilities, their gradients

  layer = 4 rows width (8 D + 4 F + 4 (N + 2 K) H + 2 N width) is everything that a layer
  computes. saved is the same without remat, the layer's input with "full", and with "dots" also
  the outputs of its matrices. All are counted as float32, because XLA may store bfloat16 wider,
  and does on CPU.

  Source: the terms were fitted to `memory_analysis()` of XLA on CPU.

  Args:
    config: DecoderConfig.
    rows, width: of a microbatch, [B, S].
    scored: completion tokens of a microbatch.
    param_bytes: of the parameters on a device, at 4 bytes each.
    chunk: tokens whose logits exist at once, see `logps.from_hidden`.
  """
  c = config
  layer = layer_bytes(c, rows, width, width)
  matrices = 2 * c.d_model + 2 * _units(c) + (c.n_heads + 2 * c.n_kv_heads) * c.head_dim
  saved = {"none": layer, "full": 4 * rows * width * c.d_model,
           "dots": 4 * rows * width * (c.d_model + matrices)}[c.remat]
  working = layer if c.remat == "none" else 3 * layer // 2  # including the recomputed one
  return (3 * param_bytes + c.n_layers * saved + working
          + 16 * min(chunk, scored) * c.vocab_size)


def forward_bytes(config, rows, width, scored, *, chunk=1024):
  """Upper estimate of the memory of scoring, without its arguments; see `update_bytes`.

    4 rows width (4 D + max(2 N width, 3 F)) + 4 chunk V + 4 (matrices of a layer)

  The last term because a layer's weights are copied from the stacked ones.
  """
  c = config
  widest = max(2 * c.n_heads * width, 3 * _units(c))
  return 4 * (rows * width * (4 * c.d_model + widest)
              + min(chunk, scored) * c.vocab_size
              + _matmul_params(c, c.n_experts or 1))


def layer_bytes(c, rows, width, keys):
  """Bytes of everything that a layer computes for [rows, width] tokens with `keys` keys each,
  in float32."""
  projections = (c.n_heads + 2 * c.n_kv_heads) * c.head_dim
  return 4 * rows * width * (8 * c.d_model + 4 * _units(c) + 4 * projections
                             + 2 * c.n_heads * keys)


def _units(c):
  """Hidden units of the MLPs that a token passes through."""
  return c.d_ff * (c.experts_per_token or 1)


def _matmul_params(c, mlps=None):
  """Parameters of a layer's matrices, with `mlps` experts; None: those that a token uses."""
  attention = (2 * c.n_heads + 2 * c.n_kv_heads) * c.head_dim * c.d_model
  if mlps is None: mlps = c.experts_per_token or 1
  return attention + c.d_model * (c.n_experts + 3 * mlps * c.d_ff)
