"""One decoder for all families (families/): `init` and pure forward passes.

Parameters are a nested dict; those of the layers are stacked on axis 0 (L), in checkpoints too.
This file computes whole sequences, `decode.py` one token per row. Norms, rotary angles, softmax
and logits are float32 for any dtype of the activations.

Axis letters as in `core/axes.py`. Query head k * R + r uses key-value head k.
"""
import dataclasses
import functools
import math
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import axes
from rlx.models import attention, experts, lora


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
  """The architecture of a decoder, and how a run computes it. Hashable: static under jit."""
  vocab_size: int
  d_model: int
  n_layers: int
  n_heads: int
  n_kv_heads: int
  head_dim: int
  d_ff: int
  context: int | None = None     # max_position_embeddings of config.json
  norm_eps: float = 1e-6
  norms: str = "pre"             # RMSNorm of a sublayer's input (pre), output (post), or both
  norm_plus_one: bool = False    # Norms multiply by 1 + scale.
  activation: str = "silu"       # silu | gelu_tanh
  tied_head: bool = True         # The embedding is also the head.
  has_head: bool = False         # One for scores, in place of that for tokens (value.py).
  score_head: str = "plain"      # Its kind, one of value.HEADS, and how many numbers it gives.
  outputs: int = 1
  scaled_embedding: bool = False  # multiplied by sqrt(d_model)
  logit_softcap: float | None = None  # Logits become cap tanh(logits / cap).
  qkv_bias: bool = False
  o_bias: bool = False
  mlp_bias: bool = False
  qk_norm: str | None = None     # RMSNorm of queries and keys: of each "head", or of "all"
  query_scalar: float | None = None   # Scores are divided by its root; None: head_dim.
  attn_softcap: float | None = None   # as logit_softcap, for attention scores
  windows: tuple | None = None   # For each layer, the last positions that a token attends
                                 # to, its own included; 0: all. None: all 0.
  rope_theta: float = 10000.0
  rope_dim: int | None = None    # features of a head that are rotated; None: all
  rope_scaling: tuple | None = None   # see `frequencies`
  local_theta: float | None = None    # rope_theta of layers with a window, unscaled
  no_rope: tuple = ()            # layers without rotary angles
  n_experts: int = 0             # 0: one MLP; otherwise d_ff is the width of one expert
  experts_per_token: int = 0
  norm_topk: bool = True         # The weights of a token's experts sum to 1.
  # Set by a run.
  outside: tuple = ()            # (first, end) of ids that the tokenizer does not have; `leave_out`
  length: int = 0                # tokens of its longest sequence; see `frequencies`
  dtype: str = "float32"         # of activations and key-value cache
  param_dtype: str = "float32"   # of parameters made by init
  matmul_precision: str = "exact"  # Of float32 activations: exact | default; see `exact_products`.
  lora_scale: float = 1.0        # of adapters, if the parameters have any (lora.py)
  kv_copies: int = 1             # of each key-value head, where there are fewer than devices
  attention: str = "blocks"      # kernel for whole sequences: attention.py
  decoding: str = "parts"        # attention of one token: parts | fused (decode_kernel.py)
  remat: str = "none"            # What backward recomputes: none | full | dots (all
                                 # but matrix products).
  platform: str | None = None    # of the devices: cpu | gpu | tpu; None: see `platform`
  # Sharding of activations [B, Q, D] and caches [W, K, ..] whose rows are spread over devices.
  # None: XLA's choice, which is that of a sharded embedding: activations are then summed over
  # devices in every layer.
  rows: jax.sharding.Sharding | None = None
  heads: jax.sharding.Sharding | None = None

  def __post_init__(self):
    if self.n_heads % self.n_kv_heads:
      raise ValueError(f"n_kv_heads={self.n_kv_heads} must divide n_heads={self.n_heads}.")
    for field, allowed in _CHOICES.items():
      if getattr(self, field) not in allowed:
        raise ValueError(f"{field}={getattr(self, field)!r} must be one of {allowed}.")
    if self.rope_scaling and len(self.rope_scaling) - 1 != len(
        ROPE_SCALING.get(self.rope_scaling[0], "")):
      raise ValueError(f"rope_scaling={self.rope_scaling} must be None or a kind with its "
                       f"numbers: {ROPE_SCALING}.")
    if self.windows is not None and len(self.windows) != self.n_layers:
      raise ValueError(f"windows={self.windows} must be n_layers={self.n_layers} numbers.")
    if lacks := self.lacks(self.attention):
      raise ValueError(f"attention={self.attention!r} {lacks}; use 'blocks'.")

  def lacks(self, attention):
    """What of this model an attention kernel cannot compute; None if it can compute all."""
    if attention == "cudnn" and self.attn_softcap is not None: return "has no soft cap"
    if attention == "blocks" or len(self.window_sizes) == 1: return None
    return f"has one window for all layers, not {sorted(self.window_sizes)}"

  @property
  def max_positions(self):
    """The longest sequence the model supports, in tokens; None if its file does not say."""
    if self.context is None or not self.rope_scaling: return self.context
    values = dict(zip(ROPE_SCALING[self.rope_scaling[0]], self.rope_scaling[1:]))
    # Files with these two kinds may give the context before it was extended.
    if self.rope_scaling[0] not in ("yarn", "dynamic"): return self.context
    return max(self.context, int(values["factor"] * values[ORIGINAL]))

  @property
  def window_sizes(self):
    """The different windows of layers; 0: none, also if it is as long as any sequence."""
    most = self.max_positions or math.inf
    return {w if w < most else 0 for w in self.windows or (0,)}

  @property
  def kv_heads(self):
    """Key-value heads as attention and the cache have them, with copies."""
    return self.n_kv_heads * self.kv_copies

  @property
  def kinds(self):
    """(window, rope) of each layer; rope is full, local or none."""
    rope = lambda i, w: ("none" if i in self.no_rope else
                         "local" if w and self.local_theta else "full")
    return tuple((w, rope(i, w)) for i, w in enumerate(self.windows or (0,) * self.n_layers))


_REMAT = {"none": None, "full": jax.checkpoint_policies.nothing_saveable,
          "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable}
_CHOICES = dict(norms=("pre", "post", "both"), activation=("silu", "gelu_tanh"),
                qk_norm=(None, "head", "all"), attention=attention.KINDS, remat=tuple(_REMAT),
                decoding=("parts", "fused"),
                matmul_precision=("exact", "default"))
ORIGINAL = "original_max_position_embeddings"
ROPE_SCALING = {  # kind -> the numbers that follow it, by their keys in config.json
    "linear": ("factor",), "dynamic": ("factor", ORIGINAL),
    "llama3": ("factor", "low_freq_factor", "high_freq_factor", ORIGINAL),
    "yarn": ("factor", "beta_fast", "beta_slow", ORIGINAL, "attention_factor", "truncate"),
    "longrope": (ORIGINAL, "attention_factor", "short_factor", "long_factor")}


def exact_products(fn):
  """fn(params, config, ..) in which float32 activations are multiplied as float32.

  By default GPUs multiply them as TF32 and TPUs as bfloat16. Gradients have the precision of the
  products that they belong to. Nothing changes with narrower activations, or with
  config.matmul_precision="default".
  """
  @functools.wraps(fn)
  def run(params, config, *args, **options):
    if jnp.dtype(config.dtype).itemsize < 4 or config.matmul_precision == "default":
      return fn(params, config, *args, **options)
    with jax.default_matmul_precision("highest"): return fn(params, config, *args, **options)
  return run


@functools.partial(jax.jit, static_argnames="config")  # Eager, it takes 10 s.
def init(config, key):
  """Random parameters as a nested dict: matrices N(0, 1/fan_in), tables N(0, 0.02^2)."""
  # Parameters depend neither on devices, which are then not started for shapes alone, nor on the
  # kernel, which one token would not fit.
  config = dataclasses.replace(config, rows=None, heads=None, attention="blocks", platform="cpu")
  one_11 = jnp.zeros((1, 1), jnp.int32)
  shared = _full_sequence(config, one_11, one_11 == 0)
  # The module's initial values are standard deviations, and the scales of norms. All leaves
  # share one call of `normal`: one call per leaf takes seconds to compile.
  spread = _Decoder(config).init(key, one_11, shared)["params"]
  leaves, tree = jax.tree.flatten_with_path(spread)
  ends = np.cumsum([0] + [x.size for _, x in leaves])
  noise = jax.random.normal(key, (int(ends[-1]),), jnp.float32)
  return jax.tree.unflatten(tree, [
      x if path[-1].key.startswith("scale")
      else x * noise[start:end].reshape(x.shape).astype(x.dtype)
      for (path, x), start, end in zip(leaves, ends, ends[1:])])


class Trunks(NamedTuple):
  """Prefixes that rows of a batch continue, each stored once."""
  tokens_PX: Any
  positions_PX: Any
  valid_PX: Any
  trunk_OB: Any  # row -> its trunk, for each of the devices over which trunks and rows are sharded


@exact_products
def hidden(params, config, tokens_BS, positions_BS, valid_BS, segments_BS=None,
           branches_BS=None, trunks=None):
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
      trunk, and to its own branch. Requires segments_BS.
    trunks: Trunks; every token also attends to the whole trunk of its row.
  Returns:
    hidden_BSD after the final norm; finite but meaningless on padding.
  """
  axes.dims(tokens_BS=tokens_BS, positions_BS=positions_BS, valid_BS=valid_BS)
  take, back = _from_first_column(config, valid_BS, segments_BS)
  tokens_BS, positions_BS, valid_BS = map(take, (tokens_BS, positions_BS, valid_BS))
  shared = _full_sequence(config, positions_BS, valid_BS, segments_BS, branches_BS, trunks)
  if trunks is None: return back(_apply(_Decoder(config), params, tokens_BS, shared)[0])
  tokens_OQ = _list_tokens(trunks, trunks.tokens_PX, tokens_BS)
  hidden_OQD = _apply(_Decoder(config), params, tokens_OQ, shared)[0]
  before = trunks.tokens_PX.size // len(tokens_OQ)
  return hidden_OQD[:, before:].reshape(*tokens_BS.shape, -1)


@exact_products
def prefill(params, config, tokens_PX, positions_PX, valid_PX):
  """Rotated keys and values of the prompts: k_LPXKH, v_LPXKH. Args as `hidden`."""
  axes.dims(tokens_PX=tokens_PX, positions_PX=positions_PX, valid_PX=valid_PX)
  take, back = _from_first_column(config, valid_PX)
  shared = _full_sequence(config, take(positions_PX), take(valid_PX))
  kv_L = _apply(_Decoder(config, keeps_kv=True), params, take(tokens_PX), shared)[1]
  return jax.tree.map(jax.vmap(back), kv_L)


def _from_first_column(config, valid_BS, segments_BS=None):
  """(take, back): x_BS with the tokens of each row from column 0 on, and the inverse.

  Both change nothing where the kernel does not need it, or where rows are packed.
  """
  if config.attention != "cudnn" or segments_BS is not None: return (lambda x: x,) * 2
  columns_S = jnp.arange(valid_BS.shape[1])
  first_B1 = jnp.argmax(valid_BS, axis=1)[:, None]
  def roll(x_BS, by_B1):
    index_BS = (columns_S[None] + by_B1) % len(columns_S)
    return jnp.take_along_axis(x_BS, index_BS.reshape(*index_BS.shape, *[1] * (x_BS.ndim - 2)), 1)
  return lambda x_BS: roll(x_BS, first_B1), lambda x_BS: roll(x_BS, -first_B1)


@exact_products
def logits(params, config, hidden):
  """hidden [..., D] -> logits [..., V], float32."""
  dtype = jnp.dtype(config.dtype)
  spec, w = (("...D,VD->...V", params["embed"]["w_VD"]) if config.tied_head
             else ("...D,DV->...V", params["head"]["w_DV"]))
  return leave_out(config, attention.soft_cap(
      attention.multiply(spec, hidden.astype(dtype), w.astype(dtype)), config.logit_softcap))


OUTSIDE = -1e9  # Its exp is 0 in float32 at any temperature that is used, and 0 times it is 0.


def leave_out(config, logits, axis=-1):
  """Logits with OUTSIDE at the ids that the tokenizer does not have; unchanged if it has all.

  Checkpoints may have more rows of the embedding than there are tokens, such as Qwen2.5's 151,936
  for 151,665. Such an id then has probability 0 and no gradient, in sampler and trainer alike.
  """
  if not config.outside: return logits
  shape = [1] * logits.ndim
  shape[axis] = -1
  return jnp.where(is_outside(config).reshape(shape), OUTSIDE, logits)


def is_outside(config):
  """bool [V], numpy: the ids that the tokenizer does not have."""
  ids_V = np.arange(config.vocab_size)
  return np.any([(first <= ids_V) & (ids_V < end) for first, end in config.outside], axis=0)


def activate(config, gate, up):
  """The input of the MLP's last matrix."""
  return dict(silu=jax.nn.silu, gelu_tanh=jax.nn.gelu)[config.activation](gate) * up


def mix_experts(config, x_UD, *matrices):
  """`experts.mix` with the options of the config."""
  mix = functools.partial(experts.mix, per_token=config.experts_per_token,
                          norm_topk=config.norm_topk, activated=functools.partial(activate, config))
  if config.rows is None: return mix(x_UD, *matrices)
  # Each device sorts its own tokens. Without shard_map, XLA would make each device sort and
  # multiply all of them.
  rows = jax.sharding.PartitionSpec(config.rows.spec[0])
  return jax.shard_map(
      mix, mesh=config.rows.mesh, in_specs=(rows, *[jax.sharding.PartitionSpec()] * 4),
      out_specs=rows, axis_names=set(config.rows.spec[0]))(x_UD, *matrices)


def embed_rows(config, rows):
  """The input of the first layer: rows of the embedding, in the dtype of the activations."""
  rows = rows.astype(config.dtype)
  return rows * rows.dtype.type(config.d_model**0.5) if config.scaled_embedding else rows


def norm_scale(config, scale):
  """The factor of a norm."""
  return scale.astype(widen(config.dtype)) + 1 if config.norm_plus_one else scale


def _attend(config, q_BQNH, k_BSKH, v_BSKH, prepared):
  """`attention.attend` with the options of the config."""
  attend = functools.partial(attention.attend, config.attention, scale=attn_scale(config),
                             softcap=config.attn_softcap, window=min(config.window_sizes),
                             platform=platform(config))
  if config.rows is None or config.attention == "blocks":
    return attend(q_BQNH, k_BSKH, v_BSKH, prepared)
  # XLA does not partition the calls of a kernel: each device calls it for its rows and heads.
  spec = jax.sharding.PartitionSpec
  rows, heads = spec(*config.rows.spec), spec(*config.rows.spec, None, "tensor")
  return jax.shard_map(attend, mesh=config.rows.mesh, in_specs=(heads, heads, heads, rows),
                       out_specs=heads, check_vma=False)(q_BQNH, k_BSKH, v_BSKH, prepared)


def _pin_between_layers(config, x_BQD):
  """Activations that are kept for backward: rows over their devices, and columns over the tensor
  axis if it divides them. Tokens of experts are sorted, so their rows stay whole."""
  if config.rows is None: return x_BQD
  mesh = config.rows.mesh
  divides = x_BQD.shape[1] % mesh.shape["tensor"] == 0 and not config.n_experts
  return pin(x_BQD, jax.sharding.NamedSharding(
      mesh, jax.sharding.PartitionSpec(*config.rows.spec, "tensor" if divides else None)))


def pin(x, sharding):
  """x constrained to `sharding`; None: no constraint."""
  return x if sharding is None else jax.lax.with_sharding_constraint(x, sharding)


def attn_scale(config):
  """The factor of attention scores."""
  return (config.query_scalar or config.head_dim)**-0.5


def platform(config):
  """The platform whose programs are compiled, which decides about layouts and kernels."""
  return config.platform or jax.default_backend()


def row_shards(config):
  """Number of devices over which rows of activations are sharded."""
  if config.rows is None: return 1
  return math.prod(config.rows.mesh.shape[axis] for axis in config.rows.spec[0])


def widen(dtype):
  """float32, or float64 if the activations are."""
  return jnp.promote_types(dtype, jnp.float32)


def _apply(module, params, *args):
  # Without the token head and the value head, which the module does not have.
  decoder = {name: params[name] for name in ("embed", "layers", "norm")}
  return module.apply({"params": decoder}, *args)


def _list_tokens(trunks, x_PX, x_BS):
  """The tokens of trunks, then those of the rows, as one row for each device."""
  shards = len(trunks.trunk_OB)
  return jnp.concatenate([x_PX.reshape(shards, -1), x_BS.reshape(shards, -1)], axis=1)


def _full_sequence(config, positions_BS, valid_BS, segments_BS=None, branches_BS=None, trunks=None):
  """What layers share in a causal pass: (rotary angles, mask) for each kind of layer.

  Returns:
    (angles, mask), stacked if there are several kinds of layers.
    kind_L, the index of each layer's kind; None if there is only one.
  """
  kinds = sorted(set(config.kinds))
  positions = positions_BS if trunks is None else _list_tokens(
      trunks, trunks.positions_PX, positions_BS)
  def compute_shared(window, rope):
    turns = tuple(x[:, :, None, :] for x in rotations(config, positions, rope))
    return turns, attention.prepare(config.attention, valid_BS, segments_BS, branches_BS,
                                    positions_BS=positions_BS, window=window, trunks=trunks)
  by_kind = [compute_shared(*kind) for kind in kinds]
  if len(kinds) == 1: return by_kind[0], None
  return (jax.tree.map(lambda *x: jnp.stack(x), *by_kind),
          jnp.array([kinds.index(kind) for kind in config.kinds]))


def rotations(config, positions, rope="full"):
  """(cos, sin) of the rotary angles at `positions` [...], each [..., rotated features / 2].

  Args:
    rope: of the layer, see `DecoderConfig.kinds`.
  """
  dtype = widen(config.dtype)
  f, size = frequencies(config, rope)
  angles = jnp.expand_dims(positions.astype(dtype), -1) * jnp.asarray(f, dtype).reshape(
      (1,) * positions.ndim + (-1,))
  return size * jnp.cos(angles), size * jnp.sin(angles)


def frequencies(config, rope="full"):
  """Rotary frequencies in radians per position, float64, and a factor of cos and sin.

    f_i = theta^(-2i/r), i < r / 2, where r features of a head are rotated; then, per
    `rope_scaling`, with n = original context, s = factor:
    linear:   f / s
    llama3:   f if the wavelength is short, f / s if it is long (relative to n), and an
              interpolation between the two
    yarn:     as llama3, between the dimensions that turn beta_fast and beta_slow times
              within n; cos and sin times attention_factor
    dynamic:  theta (s l / n - s + 1)^(r / (r - 2)) for theta, l = max(length, n)
    longrope: f / long_i if length > n, else f / short_i; cos and sin times attention_factor

  Source: RoFormer, Su et al. 2021, arXiv:2104.09864; llama3 as released with Llama 3.1
  (Grattafiori et al. 2024, arXiv:2407.21783); YaRN, Peng et al. 2023, arXiv:2309.00071,
  eq. 22 and 25; LongRoPE, Ding et al. 2024, arXiv:2402.13753.
  Differs from the papers: halves of a head are paired instead of neighbours,
  as in the Hugging Face checkpoints. dynamic and longrope: length is that of the run's longest
  sequence, not of each batch's, so that cached keys and training agree.
  """
  dim = config.rope_dim or config.head_dim
  if rope == "none": return np.zeros(dim // 2), 1.0
  theta = config.local_theta if rope == "local" else config.rope_theta
  powers = lambda theta: theta ** (-np.arange(0, dim, 2) / dim)
  f = powers(theta)
  if config.rope_scaling is None or rope == "local": return f, 1.0
  kind, *numbers = config.rope_scaling
  if kind == "linear": return f / numbers[0], 1.0
  if kind == "dynamic":
    factor, original = numbers
    longer = factor * max(config.length, original) / original - factor + 1
    return powers(theta * longer ** (dim / (dim - 2))), 1.0
  if kind == "longrope":
    original, size, short, long = numbers
    return f / np.array(long if config.length > original else short), size
  if kind == "llama3":
    factor, low, high, original = numbers
    turns = original * f / (2 * np.pi)  # rotations within the original context
    keep, size = np.clip((turns - low) / (high - low), 0, 1), 1.0
  else:
    factor, fast, slow, original, size, truncate = numbers
    low, high = (dim * np.log(original / (n * 2 * np.pi)) / (2 * np.log(theta))
                 for n in (fast, slow))
    if truncate: low, high = np.floor(low), np.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    keep = 1 - np.clip((np.arange(dim // 2) - low) / (high - low or 1e-3), 0, 1)
  return (1 - keep) * f / factor + keep * f, size


def rotate(x, turns, axis=-1):
  """Rotates features along `axis` by `turns` = (cos, sin), which broadcast.

  Feature i is paired with feature i + n, where n is the size of cos; later features stay.
  """
  cos, sin = turns
  half = cos.shape[axis]
  a, b, rest = jnp.split(x, [half, 2 * half], axis=axis)
  a, b = a.astype(cos.dtype), b.astype(cos.dtype)
  turned = (a * cos - b * sin).astype(x.dtype), (b * cos + a * sin).astype(x.dtype)
  return jnp.concatenate([*turned, rest], axis=axis)


def rms_norm(x, scale, eps, axis=-1):
  """x / rms(x) * scale along `axis`, in float32 or wider; `scale` broadcasts."""
  y = x.astype(widen(x.dtype))
  y = y * jax.lax.rsqrt(jnp.mean(y**2, axis=axis, keepdims=True) + eps)
  return (y * scale.astype(y.dtype)).astype(x.dtype)


class _Decoder(nn.Module):
  """Embedding, scanned blocks and final norm; also creates the head's parameters."""
  config: DecoderConfig
  keeps_kv: bool = False  # Also return the new keys and values of every layer.

  @nn.compact
  def __call__(self, tokens_BQ, shared):
    c = self.config
    # So small that all tokens are about equally likely at first.
    table = lambda name, leaf, *shape: self.param(
        name, lambda _: {leaf: jnp.full(shape, 0.02, c.param_dtype)})[leaf]
    embed_VD = table("embed", "w_VD", c.vocab_size, c.d_model)
    if self.is_initializing() and not c.tied_head: table("head", "w_DV", c.d_model, c.vocab_size)
    block = _Block
    if c.remat != "none" and not self.keeps_kv:
      block = nn.remat(_Block, policy=_REMAT[c.remat], prevent_cse=False)
    layers = nn.scan(  # The check of invariants would trace the block a second time.
        block, variable_axes={"params": 0}, split_rngs={"params": True},
        in_axes=(nn.broadcast, 0), out_axes=0, length=c.n_layers, check_constancy_invariants=False)
    x_BQD = _pin_between_layers(c, embed_rows(c, _look_up(c, embed_VD, tokens_BQ)))
    x_BQD, kv_L = layers(c, self.keeps_kv, name="layers")(x_BQD, *shared)
    # Completions start at any column.
    return pin(_normalize(self, "norm", "scale_D", (c.d_model,), x_BQD), c.rows), kv_L


class _Block(nn.Module):
  config: DecoderConfig
  keeps_kv: bool

  @nn.compact
  def __call__(self, x_BQD, shared, kind):
    c = self.config
    if kind is not None: shared = jax.tree.map(lambda x: x[kind], shared)
    norm = lambda name, x_BQD: _normalize(self, name, "scale_LD", (c.d_model,), x_BQD)
    def add_sublayer(x_BQD, name, sublayer):
      y_BQD = x_BQD if c.norms == "post" else norm(f"{name}_norm", x_BQD)
      y_BQD, more = sublayer(y_BQD)
      if c.norms != "pre": y_BQD = norm(f"{name}_post_norm", y_BQD)
      return _pin_between_layers(c, x_BQD + y_BQD), more
    x_BQD, kv = add_sublayer(x_BQD, "attn", lambda y: _Attention(c, name="attn")(y, shared))
    x_BQD, _ = add_sublayer(x_BQD, "mlp", lambda y: (_Mlp(c, name="mlp")(y), None))
    return x_BQD, kv if self.keeps_kv else None


class _Attention(nn.Module):
  config: DecoderConfig

  @nn.compact
  def __call__(self, x_BQD, shared):
    c = self.config
    turns, attended = shared
    d, n, k, h = c.d_model, c.n_heads, c.n_kv_heads, c.head_dim
    b, width, _ = x_BQD.shape
    # Products over a flat list of tokens: with separate axes B and Q, XLA on CPU transposes
    # both factors of a weight's gradient first.
    def project(leaf, heads):
      w = _matrix(self, leaf, (d, heads, h), d).reshape(d, heads * h)
      return (x_BQD.reshape(-1, d) @ w).reshape(b, width, heads, h)
    q, k_, v = project("q_LDNH", n), project("k_LDKH", k), project("v_LDKH", k)
    if c.qkv_bias:
      q = q + _bias(self, "q_bias_LNH", (n, h))[None, None]
      k_ = k_ + _bias(self, "k_bias_LKH", (k, h))[None, None]
      v = v + _bias(self, "v_bias_LKH", (k, h))[None, None]
    if c.qk_norm == "head":
      q = _normalize(self, "q_norm", "scale_LH", (h,), q)
      k_ = _normalize(self, "k_norm", "scale_LH", (h,), k_)
    elif c.qk_norm == "all":
      q = _normalize(self, "q_norm", "scale_LNH", (n, h), q)
      k_ = _normalize(self, "k_norm", "scale_LKH", (k, h), k_)
    q, k_ = rotate(q, turns), rotate(k_, turns)
    if c.kv_copies > 1: k_, v = (jnp.repeat(x, c.kv_copies, axis=2) for x in (k_, v))
    out_BQNH = _attend(c, q, k_, v, attended)
    w = _matrix(self, "o_LNHD", (n, h, d), n * h).reshape(n * h, d)
    y_BQD = (out_BQNH.reshape(-1, n * h) @ w).reshape(x_BQD.shape)
    if c.o_bias: y_BQD = y_BQD + _bias(self, "o_bias_LD", (d,))[None, None]
    return y_BQD, (k_, v)


class _Mlp(nn.Module):
  """Gated MLP, or a mixture of experts."""
  config: DecoderConfig

  @nn.compact
  def __call__(self, x_BQD):
    c = self.config
    d, f, e = c.d_model, c.d_ff, c.n_experts
    x_UD = x_BQD.reshape(-1, d)  # As in _Attention.
    if e:
      y_UD = mix_experts(c, x_UD, _matrix(self, "router_LDE", (d, e), d),
                         _matrix(self, "gate_LEDF", (e, d, f), d),
                         _matrix(self, "up_LEDF", (e, d, f), d),
                         _matrix(self, "down_LEFD", (e, f, d), f))
      return y_UD.reshape(x_BQD.shape)
    gate_UF = x_UD @ _matrix(self, "gate_LDF", (d, f), d)
    up_UF = x_UD @ _matrix(self, "up_LDF", (d, f), d)
    if c.mlp_bias:
      gate_UF = gate_UF + _bias(self, "gate_bias_LF", (f,))[None]
      up_UF = up_UF + _bias(self, "up_bias_LF", (f,))[None]
    y_UD = activate(c, gate_UF, up_UF) @ _matrix(self, "down_LFD", (f, d), f)
    if c.mlp_bias: y_UD = y_UD + _bias(self, "down_bias_LD", (d,))[None]
    return y_UD.reshape(x_BQD.shape)


def _normalize(module, name, leaf, shape, x):
  """RMSNorm over the last axes of x, those of its scale, the parameter `leaf` of part `name`."""
  c = module.config
  start = jnp.zeros if c.norm_plus_one else jnp.ones
  scale = module.param(name, lambda _: {leaf: start(shape, c.param_dtype)})[leaf]
  scale = norm_scale(c, scale).reshape((1,) * (x.ndim - len(shape)) + shape)
  return rms_norm(x, scale, c.norm_eps, axis=tuple(range(-len(shape), 0)))


def _matrix(module, leaf, shape, fan_in):
  """A layer's weight, with its adapter if there is one, in the dtype of the activations."""
  c = module.config
  std = nn.initializers.constant(fan_in**-0.5)
  w = gather_weight(c, module.param(leaf, std, shape, c.param_dtype), leaf.rpartition("_L")[2])
  more = lora.compute_delta(module.variables.get("params", {}), leaf, c.lora_scale)
  return w if more is None else w + more.astype(c.dtype)


def gather_weight(config, w, letters):
  """A weight in the dtype of the activations, with all of its axis D on each device.

  Trained parameters are spread over fsdp along D. Without the constraints XLA for TPUs multiplies
  by one part after the other, which reads and writes activations once for each part. The gradient
  is spread like the weight, also only after its whole product: the compiler makes one
  reduce-scatter of it.

  Args:
    letters: the axes of w.
  """
  if config.rows is None: return w.astype(config.dtype)
  spec, mesh = jax.sharding.PartitionSpec, config.rows.mesh
  spread: str | tuple = "fsdp"
  if "K" in letters and config.kv_copies > 1: spread = ("fsdp", "tensor")
  def along(axes, x):
    return pin(x, jax.sharding.NamedSharding(mesh, spec(
        *(axes if a == "D" else spec.UNCONSTRAINED for a in letters))))

  @jax.custom_vjp
  def gather_whole(w): return along(None, along(spread, w.astype(config.dtype)))

  gather_whole.defvjp(lambda w: (gather_whole(w), None),
                      lambda _, d: (along(spread, along(None, d).astype(w.dtype)),))
  return gather_whole(w)


def _look_up(config, table_VD, tokens_BQ):
  """Rows of the embedding.

  On a mesh each device looks up its own tokens in its part of V, with all of D; the parts of the
  tensor axis are summed. XLA would gather and sum tables over the tensor axis.
  """
  if config.rows is None: return table_VD[tokens_BQ]
  mesh, spec, rows = config.rows.mesh, jax.sharding.PartitionSpec, config.rows.spec
  on_all = functools.partial(jax.shard_map, mesh=mesh, check_vma=False)
  table = spec("tensor", "fsdp")

  def own(tokens_BQ, v):
    """The rows of this device's part of V; v for tokens of other parts."""
    local_BQ = tokens_BQ - jax.lax.axis_index("tensor") * v
    return jnp.where((local_BQ >= 0) & (local_BQ < v), local_BQ, v)

  @functools.partial(on_all, in_specs=(table, rows), out_specs=rows)
  def forward(part, tokens_BQ):
    whole_VD = part.astype(config.dtype)
    if mesh.shape["fsdp"] > 1:
      whole_VD = jax.lax.all_gather(whole_VD, "fsdp", axis=1, tiled=True)
    found_BQD = whole_VD.at[own(tokens_BQ, len(part))].get(mode="fill", fill_value=0)
    return jax.lax.psum(found_BQD, "tensor")

  @functools.partial(on_all, in_specs=(rows, rows), out_specs=table)
  def backward(tokens_BQ, d_BQD):
    v = config.vocab_size // mesh.shape["tensor"]
    d_VD = jnp.zeros((v, config.d_model), widen(config.dtype)).at[own(tokens_BQ, v)].add(
        d_BQD.astype(widen(config.dtype)), mode="drop")
    if mesh.shape["fsdp"] > 1:
      d_VD = jax.lax.psum_scatter(d_VD, "fsdp", scatter_dimension=1, tiled=True)
    return jax.lax.psum(d_VD, "data").astype(config.param_dtype)

  look_up = jax.custom_vjp(forward)
  look_up.defvjp(lambda table_VD, tokens_BQ: (forward(table_VD, tokens_BQ), tokens_BQ),
                 lambda tokens_BQ, d_BQD: (backward(tokens_BQ, d_BQD), None))
  return look_up(table_VD, tokens_BQ)


def run_on_each(config, fn):
  """fn(weights, *rows) on each device, with whole weights and its own rows; returns rows."""
  if config.rows is None: return fn
  spec, axes_ = jax.sharding.PartitionSpec, config.rows.spec[0]
  return lambda w, *rows: jax.shard_map(
      fn, mesh=config.rows.mesh, in_specs=(spec(), *[spec(axes_)] * len(rows)),
      out_specs=spec(axes_), axis_names=set(axes_), check_vma=False)(w, *rows)


def sum_gradients(config, d_O, letters):
  """The sum of the devices' gradients of a table, spread over devices like the table."""
  d = jnp.sum(d_O, axis=0)
  if config.rows is None: return d
  return pin(d, jax.sharding.NamedSharding(config.rows.mesh, jax.sharding.PartitionSpec(
      *({"D": "fsdp", "V": "tensor"}[a] for a in letters))))


def _bias(module, leaf, shape):
  c = module.config
  return module.param(leaf, nn.initializers.zeros, shape, c.param_dtype).astype(c.dtype)
