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


def shard_config(config, n):
  """The config of one device's shard of a decoder, with heads, d_ff and vocabulary over n."""
  c = config
  return dataclasses.replace(c, n_heads=c.n_heads // n, n_kv_heads=max(c.n_kv_heads // n, 1),
                             kv_copies=1, d_ff=c.d_ff // n, vocab_size=c.vocab_size // n)


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


def update_bytes(config, rows, width, scored, *, param_bytes, gathered=False, tensor=1, chunk=1024):
  """Upper estimate of the memory of an optimizer step, without its arguments.

    3 param_bytes                     gradients, their sum, updates, in float32
    + L saved / tensor + layer        what backward reads; the layer in progress, which counts 1.4
                                      times with attention=blocks if it is recomputed, and
                                      8 a rows width D more with a tensor axis
    + (4 + a) (tables)                embedding, head, their gradients in float32, if gathered
    + 6 (chunk V)                     logits and their gradients; 16 with attention=blocks

  a is the size of an activation, `activation_bytes`. layer = a rows width (8 D + 4 F +
  4 (N + 2 K) H [+ 2 N width]) is everything that a layer computes; the last term, attention
  scores, only with attention=blocks. saved is the same without remat, the layer's input with
  "full", and with "dots" also the outputs of its matrices.

  Source: the terms were fitted to `memory_analysis()` of XLA: with blocks on CPU, otherwise for
  TPUs and GPUs (docs/scaling.md).

  Args:
    config: DecoderConfig of a device's part, see `shard_config`.
    rows, width: of a microbatch, [B, S].
    scored: completion tokens of a microbatch.
    param_bytes: of the parameters on a device, at 4 bytes each.
    gathered: whether parameters are spread over devices and gathered for use.
    tensor: devices over which the columns of kept activations are spread.
    chunk: tokens whose logits exist at once, see `logps.from_hidden`.
  """
  c, a = config, activation_bytes(config)
  layer = layer_bytes(c, rows, width, width)
  matrices = 2 * c.d_model + 2 * _units(c) + (c.n_heads + 2 * c.n_kv_heads) * c.head_dim
  saved = {"none": layer, "full": a * rows * width * c.d_model,
           "dots": a * rows * width * (c.d_model + matrices)}[c.remat]
  is_twice = c.remat != "none" and c.attention == "blocks"
  working = 7 * layer // 5 if is_twice else layer
  # What is summed over the tensor axis exists as columns of a device and as a whole.
  if tensor > 1: working += 8 * a * rows * width * c.d_model
  logits = (16 if c.attention == "blocks" else 6) * min(chunk, scored) * c.vocab_size
  tables = (4 + a) * _table_params(c) if gathered else 0
  return 3 * param_bytes + c.n_layers * saved // tensor + working + tables + logits


def forward_bytes(config, rows, width, scored, *, gathered=False, chunk=1024):
  """Upper estimate of the memory of scoring, without its arguments; see `update_bytes`.

    a rows width (4 D + 1.5 F) + 4 chunk V + a (matrices of a layer) [+ a (tables) if gathered]

  With attention=blocks the greater of 2 N width, the scores, and 3 F instead of 1.5 F. The last
  term because a layer's weights are gathered, or copied from the stacked ones.
  """
  c, a = config, activation_bytes(config)
  widest = (max(2 * c.n_heads * width, 3 * _units(c)) if c.attention == "blocks" else
            3 * _units(c) // 2)
  return (a * rows * width * (4 * c.d_model + widest) + 4 * min(chunk, scored) * c.vocab_size
          + a * _matmul_params(c, c.n_experts or 1) + gathered * a * _table_params(c))


def _table_params(c):
  """Parameters of the embedding and, if it is another table, of the head."""
  return (1 if c.tied_head else 2) * c.vocab_size * c.d_model


def layer_bytes(c, rows, width, keys):
  """Bytes of everything that a layer computes for [rows, width] tokens with `keys` keys each."""
  projections = (c.n_heads + 2 * c.n_kv_heads) * c.head_dim
  scores = 2 * c.n_heads * keys if c.attention == "blocks" else 0
  return activation_bytes(c) * rows * width * (
      8 * c.d_model + 4 * _units(c) + 4 * projections + scores)


def activation_bytes(c):
  """Bytes of an activation. With attention=blocks 4: XLA on CPU stores bfloat16 as float32."""
  return 4 if c.attention == "blocks" else jnp.dtype(c.dtype).itemsize


def _units(c):
  """Hidden units of the MLPs that a token passes through."""
  return c.d_ff * (c.experts_per_token or 1)


def _matmul_params(c, mlps=None):
  """Parameters of a layer's matrices, with `mlps` experts; None: those that a token uses."""
  attention = (2 * c.n_heads + 2 * c.n_kv_heads) * c.head_dim * c.d_model
  if mlps is None: mlps = c.experts_per_token or 1
  return attention + c.d_model * (c.n_experts + 3 * mlps * c.d_ff)
