"""One decoder for Llama and its kin (families/): `init` and pure forward passes.

Parameters are a nested dict; those of the layers are stacked on axis 0 (L), in
checkpoints too. This file passes over whole sequences, `decode.py` one token a row.
Norms, rotary angles, softmax and logits are float32 whatever the activations.

Axis letters as in `core/axes.py`; R = N / K query heads share a kv head, and
query head k * R + r uses kv head k.
"""
import dataclasses
import functools
import math

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import axes
from rlx.models import attention
from rlx.models import lora


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
  """What distinguishes one decoder from another. Hashable: static under jit."""
  vocab_size: int
  d_model: int
  n_layers: int
  n_heads: int
  n_kv_heads: int
  head_dim: int
  d_ff: int
  rope_theta: float = 10000.0
  norm_eps: float = 1e-6
  qkv_bias: bool = False         # Qwen2
  qk_norm: bool = False          # Qwen3: RMSNorm of each query and key head
  tied_head: bool = True         # The embedding is also the head.
  # ("linear", factor), or ("llama3", factor, low_freq_factor, high_freq_factor,
  # original_max_position).
  rope_scaling: tuple | None = None
  dtype: str = "float32"         # of activations and cache
  param_dtype: str = "float32"   # of parameters made by init
  lora_scale: float = 1.0        # of adapters, if the parameters have any (lora.py)
  attention: str = "blocks"      # of whole sequences: attention.py
  remat: str = "none"            # Recomputed by backward: none | full | dots (all
                                 # but matmuls).
  # Where rows are spread over devices, how [B, Q, D] and caches [W, K, ..] lie. None: XLA's
  # choice, which is that of a spread embedding: activations are added up in every layer.
  rows: jax.sharding.Sharding | None = None
  heads: jax.sharding.Sharding | None = None

  def __post_init__(self):
    if self.n_heads % self.n_kv_heads:
      raise ValueError(f"n_kv_heads={self.n_kv_heads} must divide "
                       f"n_heads={self.n_heads}.")
    if self.attention not in attention.KINDS:
      raise ValueError(f"attention={self.attention!r} must be one of {attention.KINDS}.")
    if self.remat not in _REMAT:
      raise ValueError(f"remat={self.remat!r} must be one of {list(_REMAT)}.")
    if self.rope_scaling and len(self.rope_scaling) != _ROPE_SCALING.get(
        self.rope_scaling[0]):
      raise ValueError(
          f"rope_scaling={self.rope_scaling} must be None, ('linear', factor) or "
          "('llama3', factor, low_freq_factor, high_freq_factor, "
          "original_max_position).")


_REMAT = {"none": None, "full": jax.checkpoint_policies.nothing_saveable,
          "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable}
_ROPE_SCALING = {"linear": 2, "llama3": 5}  # kind -> length of the tuple


@functools.partial(jax.jit, static_argnames="config")  # Eager, it takes 10 s.
def init(config, key):
  """Random parameters as a nested dict: matrices N(0, 1/fan_in), tables N(0, 0.02^2)."""
  one_11 = jnp.zeros((1, 1), jnp.int32)
  shared = _full_sequence(config, one_11, one_11 == 0)
  # The module's initial values are standard deviations (and the norms' ones).
  # One draw serves all leaves: a draw each takes seconds to compile.
  spread = _Decoder(config).init(key, one_11, shared)["params"]
  leaves, tree = jax.tree.flatten_with_path(spread)
  ends = np.cumsum([0] + [x.size for _, x in leaves])
  noise = jax.random.normal(key, (int(ends[-1]),), jnp.float32)
  return jax.tree.unflatten(tree, [
      x if path[-1].key.startswith("scale")
      else x * noise[start:end].reshape(x.shape).astype(x.dtype)
      for (path, x), start, end in zip(leaves, ends, ends[1:])])


def hidden(params, config, tokens_BS, positions_BS, valid_BS, segments_BS=None,
           branches_BS=None):
  """Causal forward pass of whole sequences.

  Args:
    params: from `init` or a checkpoint.
    config: DecoderConfig.
    tokens_BS: int32, padded on either side.
    positions_BS: int32, position of each token in its own sequence.
    valid_BS: bool, False on padding, which no valid token attends to.
    segments_BS: int32, for rows of several sequences: a token attends to its
      own segment only. None: a row is one sequence.
    branches_BS: int32, for segments that fork: a token attends to branch 0, the
      trunk, and to its own. With segments only.
  Returns:
    hidden_BSD after the final norm; finite but meaningless on padding.
  """
  axes.dims(tokens_BS=tokens_BS, positions_BS=positions_BS, valid_BS=valid_BS)
  shared = _full_sequence(config, positions_BS, valid_BS, segments_BS, branches_BS)
  return _apply(_Decoder(config), params, tokens_BS, shared)[0]


def prefill(params, config, tokens_PX, positions_PX, valid_PX):
  """Rotated keys and values of the prompts: k_LPXKH, v_LPXKH. Args as `hidden`."""
  axes.dims(tokens_PX=tokens_PX, positions_PX=positions_PX, valid_PX=valid_PX)
  shared = _full_sequence(config, positions_PX, valid_PX)
  return _apply(_Decoder(config, keeps_kv=True), params, tokens_PX, shared)[1]


def logits(params, config, hidden):
  """hidden [..., D] -> logits [..., V], float32."""
  dtype = jnp.dtype(config.dtype)
  spec, w = (("...D,VD->...V", params["embed"]["w_VD"]) if config.tied_head
             else ("...D,DV->...V", params["head"]["w_DV"]))
  return jnp.einsum(spec, hidden.astype(dtype), w.astype(dtype),
                    preferred_element_type=wide(dtype))


def pinned(x, sharding):
  """x on the devices that `sharding` says; None: anywhere."""
  return x if sharding is None else jax.lax.with_sharding_constraint(x, sharding)


def row_shards(config):
  """How many devices rows of activations are spread over."""
  if config.rows is None: return 1
  return math.prod(config.rows.mesh.shape[axis] for axis in config.rows.spec[0])


def wide(dtype):
  """float32, or wider where the activations are: float64 checks stay float64."""
  return jnp.promote_types(dtype, jnp.float32)


def _apply(module, params, *args):
  # What else lives beside the decoder (head, value head) is not its business.
  decoder = {name: params[name] for name in ("embed", "layers", "norm")}
  return module.apply({"params": decoder}, *args)


def _full_sequence(config, positions_BS, valid_BS, segments_BS=None, branches_BS=None):
  """What all layers share in a causal pass over whole sequences."""
  turns = tuple(x[:, :, None, :] for x in rotations(config, positions_BS))
  return turns, attention.prepare(config.attention, valid_BS, segments_BS, branches_BS)


def rotations(config, positions):
  """(cos, sin) [..., H/2] of the rotary angles at `positions` [...]."""
  dtype = wide(config.dtype)
  per_position = jnp.asarray(frequencies(config), dtype)
  angles = jnp.expand_dims(positions.astype(dtype), -1) * per_position.reshape(
      (1,) * positions.ndim + (-1,))
  return jnp.cos(angles), jnp.sin(angles)


def frequencies(config):
  """Rotary frequencies [H/2] in radians per position, float64.

    f_i = theta^(-2i/H), then per `rope_scaling`
    linear: f / factor
    llama3: f where the wavelength is short, f / factor where it is long, an
      interpolation between (wavelength against original_max_position)

  Source: RoFormer, Su et al. 2021, arXiv:2104.09864; the llama3 rule is the one
  of Llama 3.1 (Grattafiori et al. 2024, arXiv:2407.21783) as released.
  Differs from the papers: halves of a head are paired instead of neighbours,
  as in the Hugging Face checkpoints.
  """
  f = config.rope_theta ** (-np.arange(0, config.head_dim, 2) / config.head_dim)
  if config.rope_scaling is None: return f
  kind, factor, *rest = config.rope_scaling
  if kind == "linear": return f / factor
  low, high, original = rest
  turns = original * f / (2 * np.pi)  # How often it turns within the old context.
  keep = np.clip((turns - low) / (high - low), 0, 1)
  return (1 - keep) * f / factor + keep * f


def rotate(x, turns, axis=-1):
  """Turns the halves of `axis` by `turns` = (cos, sin), which broadcast."""
  cos, sin = turns
  a, b = jnp.split(x.astype(cos.dtype), 2, axis=axis)
  return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], axis=axis).astype(x.dtype)


def rms_norm(x, scale, eps, axis=-1):
  """x / rms(x) * scale along `axis`, in float32 or wider; `scale` broadcasts."""
  y = x.astype(wide(x.dtype))
  y = y * jax.lax.rsqrt(jnp.mean(y**2, axis=axis, keepdims=True) + eps)
  return (y * scale.astype(y.dtype)).astype(x.dtype)


class _Decoder(nn.Module):
  """Embedding, scanned blocks, final norm; makes the head when initialising."""
  config: DecoderConfig
  keeps_kv: bool = False  # Also returns the new keys and values of every layer.

  @nn.compact
  def __call__(self, tokens_BQ, shared):
    c = self.config
    embed_VD = _Table("w_VD", c, (c.vocab_size, c.d_model), name="embed")()
    if self.is_initializing() and not c.tied_head:
      _Table("w_DV", c, (c.d_model, c.vocab_size), name="head")()
    block = _Block
    if c.remat != "none" and not self.keeps_kv:
      block = nn.remat(_Block, policy=_REMAT[c.remat], prevent_cse=False)
    layers = nn.scan(
        block, variable_axes={"params": 0}, split_rngs={"params": True},
        in_axes=nn.broadcast, out_axes=0, length=c.n_layers)
    x_BQD = pinned(_whole_rows(c, embed_VD)[tokens_BQ].astype(c.dtype), c.rows)
    x_BQD, kv_L = layers(c, self.keeps_kv, name="layers")(x_BQD, shared)
    return _Norm("scale_D", c, c.d_model, name="norm")(x_BQD), kv_L


class _Block(nn.Module):
  config: DecoderConfig
  keeps_kv: bool

  @nn.compact
  def __call__(self, x_BQD, shared):
    c = self.config
    y_BQD = _Norm("scale_LD", c, c.d_model, name="attn_norm")(x_BQD)
    y_BQD, kv = _Attention(c, name="attn")(y_BQD, shared)
    x_BQD = pinned(x_BQD + y_BQD, c.rows)
    y_BQD = _Norm("scale_LD", c, c.d_model, name="mlp_norm")(x_BQD)
    x_BQD = x_BQD + _Mlp(c, name="mlp")(y_BQD)
    return pinned(x_BQD, c.rows), kv if self.keeps_kv else None


class _Attention(nn.Module):
  config: DecoderConfig

  @nn.compact
  def __call__(self, x_BQD, shared):
    c = self.config
    turns, attended = shared
    d, n, k, h = c.d_model, c.n_heads, c.n_kv_heads, c.head_dim
    b, width, _ = x_BQD.shape
    # Matrices over a flat list of tokens: with B and Q apart, the gradient of a
    # weight is preceded by transposes of both its factors (on CPU).
    def project(leaf, heads):
      w_DM = _matrix(self, leaf, (d, heads, h), d).reshape(d, heads * h)
      return (x_BQD.reshape(-1, d) @ w_DM).reshape(b, width, heads, h)
    q, k_, v = project("q_LDNH", n), project("k_LDKH", k), project("v_LDKH", k)
    if c.qkv_bias:
      q = q + _bias(self, "q_bias_LNH", (n, h))[None, None]
      k_ = k_ + _bias(self, "k_bias_LKH", (k, h))[None, None]
      v = v + _bias(self, "v_bias_LKH", (k, h))[None, None]
    if c.qk_norm:
      q = _Norm("scale_LH", c, h, name="q_norm")(q)
      k_ = _Norm("scale_LH", c, h, name="k_norm")(k_)
    q, k_ = rotate(q, turns), rotate(k_, turns)
    out_BQNH = attention.attend(c.attention, q, k_, v, attended)
    o_MD = _matrix(self, "o_LNHD", (n, h, d), n * h).reshape(n * h, d)
    return (out_BQNH.reshape(-1, n * h) @ o_MD).reshape(x_BQD.shape), (k_, v)


class _Mlp(nn.Module):
  """SwiGLU."""
  config: DecoderConfig

  @nn.compact
  def __call__(self, x_BQD):
    d, f = self.config.d_model, self.config.d_ff
    x_MD = x_BQD.reshape(-1, d)  # As in _Attention.
    gate_MF = x_MD @ _matrix(self, "gate_LDF", (d, f), d)
    up_MF = x_MD @ _matrix(self, "up_LDF", (d, f), d)
    y_MD = (jax.nn.silu(gate_MF) * up_MF) @ _matrix(self, "down_LFD", (f, d), f)
    return y_MD.reshape(x_BQD.shape)


class _Norm(nn.Module):
  """RMSNorm of the last axis."""
  leaf: str
  config: DecoderConfig
  size: int

  @nn.compact
  def __call__(self, x):
    scale = self.param(self.leaf, nn.initializers.ones, (self.size,),
                       self.config.param_dtype)
    return rms_norm(x, scale.reshape((1,) * (x.ndim - 1) + (-1,)), self.config.norm_eps)


class _Table(nn.Module):
  """Embedding or head; small at first, so that tokens start out equally likely."""
  leaf: str
  config: DecoderConfig
  shape: tuple

  @nn.compact
  def __call__(self):
    return self.param(self.leaf, nn.initializers.constant(0.02), self.shape,
                      self.config.param_dtype)


def _matrix(module, leaf, shape, fan_in):
  """A layer's weight in the dtype of the activations; L is the scanned axis."""
  c = module.config
  std = nn.initializers.constant(fan_in**-0.5)
  w = module.param(leaf, std, shape, c.param_dtype).astype(c.dtype)
  more = lora.added(module.variables.get("params", {}), leaf, c.lora_scale)
  return w if more is None else w + more.astype(c.dtype)


def _whole_rows(config, table_VD):
  """The table with all of D on each device, as its rows are about to be picked."""
  if config.rows is None: return table_VD
  spec = jax.sharding.PartitionSpec(jax.sharding.PartitionSpec.UNCONSTRAINED, None)
  return pinned(table_VD, jax.sharding.NamedSharding(config.rows.mesh, spec))


def _bias(module, leaf, shape):
  c = module.config
  return module.param(leaf, nn.initializers.zeros, shape, c.param_dtype).astype(
      c.dtype)
