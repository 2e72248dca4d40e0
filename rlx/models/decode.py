"""The same decoder, one token per row, for sampling.

A decode step multiplies few rows by every weight, and its layouts are chosen for that:
activations are [D, W] (features first, W rows decoded at once), weights are [out, in], the
query, key and value projections are one matrix, as are gate and up, and each layer has arrays of
its own. On 2 CPU cores, 8 to 64 rows of 512 features through an MLP take 0.65 to 0.8 of the time
of [W, D] x [in, out]; slices of stacked layers would be copied in every step, which takes 1.3 to
1.7 times as long.

Values are [.., K, T, H] and keys [.., K, n, H, t], in n tiles of t columns: in these layouts both
products of attention read memory in order. Keys as [.., K, H, T] take two to three times as long
on CPU if T is above 64.

  A the query heads of a key-value head, then its key and its value: R + 2
"""
import functools

import flax.struct
import jax
import jax.numpy as jnp

from rlx.core import axes
from rlx.models import attention, decode_kernel, lora, transformer


@flax.struct.dataclass
class Prompts:
  """Keys and values of P prompts, one array per layer; row p * (W / P) + g has prompt p."""
  k_PKnHx: list  # in tiles, see `_tile`
  v_PKXH: list
  valid_PX: jax.Array  # bool


@flax.struct.dataclass
class Suffix:
  """Keys and values of the tokens that each of the W rows was fed since, one array per layer.

  They are updated in place.
  """
  k_WKnHt: list
  v_WKTH: list

  @property
  def columns(self):
    return self.v_WKTH[0].shape[2]


def lay_out(params, config, place=lambda weights: weights):
  """The parameters in the layouts that `step` reads, in the dtype of the activations.

  Adapters are merged. The layers are copied, which takes about as long as one decode step. Outside
  of jit each layer is copied by itself, with one program for all layers, so that parameters which
  are spread over devices are never all gathered at once in both layouts.

  Args:
    place: weights -> the same with constraints on their sharding; it is called in jit.
  """
  (weights, i), layers = _lay_out_rest(params, config, place), []
  for _ in range(config.n_layers):  # `i` stays on the devices.
    layer, i = _lay_out_layer(params["layers"], config, place, i)
    layers.append(layer)
  return dict(weights, layers=layers)


def trace(params, config, place):
  """The two programs of `lay_out`: {name: (jax.stages.Traced, the parameters that it reads)}."""
  rest = {name: x for name, x in params.items() if name != "layers"}
  return {"tables": (_lay_out_rest.trace(rest, config, place), rest),
          "a layer": (_lay_out_layer.trace(params["layers"], config, place, jnp.int32(0)),
                      params["layers"])}


@functools.partial(jax.jit, static_argnums=(1, 2))
def _lay_out_rest(params, config, place):
  """All but the layers, and the number of the first layer."""
  cast = lambda x: x.astype(config.dtype)
  embed_VD = cast(params["embed"]["w_VD"])
  weights = dict(embed_VD=embed_VD,
                 head_VD=embed_VD if config.tied_head else cast(params["head"]["w_DV"].T),
                 norm_D1=transformer.norm_scale(config, params["norm"]["scale_D"]).reshape(-1, 1))
  return place(weights), jnp.int32(0)


@functools.partial(jax.jit, static_argnums=(1, 2))
@transformer.exact_products
def _lay_out_layer(layers, config, place, i):
  """Layer i, and i + 1."""
  one = jax.tree.map(lambda x: jax.lax.dynamic_slice_in_dim(x, i, 1), layers)
  layers = lora.merge(dict(layers=one), config.lora_scale)["layers"]
  cast = lambda x: x.astype(config.dtype)
  scale = lambda x: transformer.norm_scale(config, x)
  attn, mlp = ({k: v[0] for k, v in layers[m].items() if not isinstance(v, dict)}
               for m in ("attn", "mlp"))
  copied = lambda x_DKH: jnp.repeat(x_DKH, config.kv_copies, axis=-2)
  def heads(q_DNH, k_DKH, v_DKH):
    q_DKRH = q_DNH.reshape(*q_DNH.shape[:-2], config.kv_heads, -1, config.head_dim)
    return jnp.concatenate([q_DKRH, *(copied(x)[..., None, :] for x in (k_DKH, v_DKH))], axis=-2)
  w = dict(
      qkv_KAHD=cast(jnp.moveaxis(
          heads(attn["q_LDNH"], attn["k_LDKH"], attn["v_LDKH"]), 0, -1)),
      out_DNH=cast(jnp.moveaxis(attn["o_LNHD"], -1, 0)),
      **{f"{name}_D1": scale(norm["scale_LD"][0])[:, None]
         for name, norm in layers.items() if name.endswith("norm")})
  if config.n_experts:
    w["experts"] = tuple(cast(mlp[leaf]) for leaf in
                         ("router_LDE", "gate_LEDF", "up_LEDF", "down_LEFD"))
  else:
    w["gate_up_2FD"] = cast(jnp.stack([mlp["gate_LDF"].T, mlp["up_LDF"].T]))
    w["down_DF"] = cast(mlp["down_LFD"].T)
  if config.qkv_bias:
    w["bias_KAH1"] = cast(heads(attn["q_bias_LNH"], attn["k_bias_LKH"],
                                attn["v_bias_LKH"]))[..., None]
  if config.o_bias: w["out_bias_D1"] = cast(attn["o_bias_LD"])[:, None]
  if config.mlp_bias:
    w["gate_up_bias_2F1"] = cast(jnp.stack([mlp["gate_bias_LF"], mlp["up_bias_LF"]]))[..., None]
    w["down_bias_D1"] = cast(mlp["down_bias_LD"])[:, None]
  if config.qk_norm:  # Sizes of 1 are broadcast.
    q, k = (scale(next(iter(layers["attn"][name].values()))[0]) for name in ("q_norm", "k_norm"))
    if config.qk_norm == "all": k = copied(k)
    lead = 1 if config.qk_norm == "head" else config.kv_heads
    w.update({f"{name}_norm_KAH1": x.reshape(lead, -1, config.head_dim, 1)
              for name, x in dict(q=q, k=k).items()})
  return place(w), i + 1


def prompts(params, config, tokens_PX, prompt_len_P):
  """Prompts of left-padded tokens, without the last token of each.

  The last token of a prompt is the first that its completions feed to `step`.
  """
  sizes = axes.dims(tokens_PX=tokens_PX, prompt_len_P=prompt_len_P)
  columns_1X = jnp.arange(sizes["X"])[None, :]
  start_P1 = (sizes["X"] - prompt_len_P)[:, None]
  valid_PX = columns_1X >= start_P1
  k_LPXKH, v_LPXKH = transformer.prefill(
      params, config, tokens_PX, jnp.maximum(columns_1X - start_P1, 0), valid_PX)
  return Prompts(k_PKnHx=list(_tile(config, k_LPXKH.transpose(0, 1, 3, 4, 2))),
                 v_PKXH=list(v_LPXKH.transpose(0, 1, 3, 2, 4)),
                 valid_PX=valid_PX & (columns_1X < sizes["X"] - 1))


def empty_suffix(config, rows, width):
  """A Suffix of `width` columns for `rows` rows."""
  k, h, (n, t) = config.kv_heads, config.head_dim, _tiles(config, width)
  return Suffix(k_WKnHt=_zeros(config, rows, k, n, h, t), v_WKTH=_zeros(config, rows, k, width, h))


def _zeros(config, *shape):
  """An empty cache: one array for each layer."""
  return [transformer.pin(jnp.zeros(shape, config.dtype), config.heads)
          for _ in range(config.n_layers)]


def move_rows(suffix, config, source_W, end, *, width, free):
  """Rows of a suffix with the `width` columns before column `end` and `free` ones after them.

  Args:
    source_W: int32, the rows; None: all, in their order.
    end: int32 scalar; at most `free` columns of the suffix follow. If it is less than `width`, the
      first columns are empty.
  """
  front = max(free, width + free - suffix.columns)
  def copy(x, axis):
    pad = lambda x, where: jnp.pad(x, [where if i == axis else (0, 0) for i in range(x.ndim)])
    x = jax.lax.dynamic_slice_in_dim(pad(x, (front, 0)), front + end - width, width, axis=axis)
    return pad(x if source_W is None else x[source_W], (0, free))
  return Suffix([_tile(config, copy(_untile(x, suffix.columns), 3)) for x in suffix.k_WKnHt],
                [copy(x, 2) for x in suffix.v_WKTH])


# The largest number of columns of a tile of keys; 128 on other devices. GPUs have one tile: with
# several, the queries are written once for each. So has the fused kernel.
_TILE = {"cpu": 64, "gpu": 2**30}


def _tiles(config, columns):
  """(number of tiles, columns of each)"""
  platform = "gpu" if config.decoding == "fused" else transformer.platform(config)
  n = -(-columns // _TILE.get(platform, 128))
  return n, -(-columns // n)


def _tile(config, k_HT):
  """[.., H, T] -> [.., n, H, t]; the last tile is padded with zeros."""
  *lead, h, columns = k_HT.shape
  n, t = _tiles(config, columns)
  k_HT = jnp.pad(k_HT, [(0, 0)] * (len(lead) + 1) + [(0, n * t - columns)])
  return jnp.moveaxis(k_HT.reshape(*lead, h, n, t), -2, -3)


def _untile(tiles, columns):
  """[.., n, H or Q, t] -> [.., H or Q, T]"""
  *lead, n, rows, t = tiles.shape
  return jnp.moveaxis(tiles, -3, -2).reshape(*lead, rows, n * t)[..., :columns]


@flax.struct.dataclass
class History:
  """Keys and values of the tokens after the prompt of each of B rows, one array per layer.

  Column 0 is the last token of the prompt and column j token j - 1 after it: what `step` writes.
  """
  k_BKHT: list
  v_BKTH: list


def empty_history(config, rows, width):
  """A History of `width` columns for `rows` rows."""
  k, h = config.kv_heads, config.head_dim
  return History(k_BKHT=_zeros(config, rows, k, h, width), v_BKTH=_zeros(config, rows, k, width, h))


def recall(history, config, row_W, end_W, *, width, free):
  """A Suffix of rows of a history: `width` columns that end with column end - 1, and `free` ones.

  Args:
    row_W: int32, the rows; another row for a number that is too large.
    end_W: int32, at most `width`. Columns before a row's first one are 0.
  """
  def copy(x, axis):
    x = jax.lax.slice_in_dim(x, 0, width, axis=axis).at[row_W].get(mode="clip")
    pad = [(width, 0) if i == axis else (0, 0) for i in range(x.ndim)]
    x = jax.vmap(lambda x, end: jax.lax.dynamic_slice_in_dim(x, end, width, axis=axis - 1))(
        jnp.pad(x, pad), end_W)
    return jnp.pad(x, [(0, free) if i == axis else (0, 0) for i in range(x.ndim)])
  return Suffix([_tile(config, copy(x, 3)) for x in history.k_BKHT],
                [copy(x, 2) for x in history.v_BKTH])


def remember(history, suffix, row_W, start_W, *, free):
  """The history with the last `free` columns of a suffix from column `start` of each row on.

  Args:
    row_W: int32, the rows; nothing is written for a number that is too large.
  """
  def put(x, new, axis):
    # One window of all heads and `free` columns for each row.
    numbers = jax.lax.ScatterDimensionNumbers(
        update_window_dims=(1, 2, 3), inserted_window_dims=(0,),
        scatter_dims_to_operand_dims=(0, axis))
    return jax.lax.scatter(x, jnp.stack([row_W, start_W], axis=1), new, numbers,
                           unique_indices=True, mode=jax.lax.GatherScatterMode.FILL_OR_DROP)
  columns = suffix.columns
  new = lambda x, axis: jax.lax.slice_in_dim(x, columns - free, columns, axis=axis)
  return History(
      [put(x, new(_untile(k, columns), 3), 3) for x, k in zip(history.k_BKHT, suffix.k_WKnHt)],
      [put(x, new(v, 2), 2) for x, v in zip(history.v_BKTH, suffix.v_WKTH)])


@transformer.exact_products
def step(weights, config, tokens_W, positions_W, prompts_, suffix, live_WT, column):
  """One token per row, attending to its prompt, its live suffix and itself.

  With `n` times fewer rows of the suffix than tokens, each n tokens in order belong to one row:
  they are written to the columns from `column` on and read each other as far as live_WT says.

  Args:
    weights: from `lay_out`.
    config: DecoderConfig.
    tokens_W, positions_W: int32, the tokens fed and their positions.
    prompts_: Prompts.
    suffix: Suffix; this token's keys and values are written to `column`.
    live_WT: bool, the suffix columns that hold tokens of the row; they are contiguous and
      end with `column`, or with the column that the token is written to.
  Returns:
    logits_WV, suffix.
  """
  axes.dims(tokens_W=tokens_W, positions_W=positions_W, live_WT=live_WT)
  windows, ropes = (sorted(set(x)) for x in zip(*config.kinds))
  turns = {rope: tuple(x.T for x in transformer.rotations(config, positions_W, rope))
           for rope in ropes}
  # Several tokens of a row are a short prefill, which the kernel does not have.
  fused = config.decoding == "fused" and len(tokens_W) == len(suffix.v_WKTH[0])
  limit, attend, axes_ = (_bounds, _attend_fused, "WKAH") if fused else (
      _mask, _attend_parts, "KAHW")
  limits = {window: limit(prompts_, positions_W, live_WT, window) for window in windows}
  x_DW = transformer.embed_rows(config, weights["embed_VD"][tokens_W]).T
  written = Suffix([], [])
  for layer, (window, rope), *kv in zip(weights["layers"], config.kinds, prompts_.k_PKnHx,
                                        prompts_.v_PKXH, suffix.k_WKnHt, suffix.v_WKTH):
    norm = functools.partial(_norm, layer, config)
    y_DW, k_WKnHt, v_WKTH = _attention(
        layer, config, norm("attn_norm", x_DW), turns[rope],
        functools.partial(attend, config, kv, limits[window], column), axes_)
    written.k_WKnHt.append(k_WKnHt)
    written.v_WKTH.append(v_WKTH)
    x_DW = x_DW + norm("attn_post_norm", y_DW)
    x_DW = x_DW + norm("mlp_post_norm", _mlp(layer, config, norm("mlp_norm", x_DW)))
  x_DW = transformer.rms_norm(x_DW, weights["norm_D1"], config.norm_eps, axis=0)
  logits_VW = jnp.matmul(weights["head_VD"], x_DW,
                         preferred_element_type=transformer.widen(config.dtype))
  logits_VW = attention.soft_cap(_keep_apart(logits_VW), config.logit_softcap)
  return transformer.leave_out(config, logits_VW, axis=0).T, written


def _keep_apart(x):
  """x behind an optimisation barrier on CPU, where XLA would fuse a product with a transpose
  next to it and has no fast routine for the result."""
  return jax.lax.platform_dependent(x, cpu=jax.lax.optimization_barrier, default=lambda x: x)


def _norm(layer, config, name, y_DW):
  """The norm of that name, if the layer has it."""
  if f"{name}_D1" not in layer: return y_DW
  return transformer.rms_norm(y_DW, layer[f"{name}_D1"], config.norm_eps, axis=0)


def _mask(prompts_, positions_W, live_WT, window):
  """bool [W, X] and [W, T]: the prompt and suffix columns that each row attends to."""
  rows = live_WT.shape[0] // prompts_.valid_PX.shape[0]
  mask_WX = jnp.repeat(prompts_.valid_PX, rows, axis=0)
  if window:
    position_WX = jnp.repeat(jnp.cumsum(prompts_.valid_PX, axis=1) - 1, rows, axis=0)
    mask_WX &= positions_W[:, None] - position_WX < window
    # A row's live columns are contiguous and end with that of the token.
    columns_1T = jnp.arange(live_WT.shape[1])[None]
    end_W1 = jnp.max(jnp.where(live_WT, columns_1T, 0), axis=1, keepdims=True)
    live_WT = live_WT & (end_W1 - columns_1T < window)
  return mask_WX, live_WT


def _bounds(prompts_, positions_W, live_WT, window):
  """int32 [W, 4]: the columns of `_mask` without the token's own, see `decode_kernel.attend`."""
  rows = live_WT.shape[0] // prompts_.valid_PX.shape[0]
  first = lambda x, axis: jnp.argmax(x, axis=axis).astype(jnp.int32)
  start_W = first(jnp.repeat(prompts_.valid_PX, rows, axis=0), 1)
  stop_W = start_W + jnp.repeat(
      jnp.sum(prompts_.valid_PX, axis=1, dtype=jnp.int32), rows)
  begin_W, end_W = first(live_WT, 1), live_WT.shape[1] - 1 - first(live_WT[:, ::-1], 1)
  if window:
    start_W = jnp.maximum(start_W, start_W + positions_W - window + 1)
    begin_W = jnp.maximum(begin_W, end_W - window + 1)
  return jnp.stack([start_W, stop_W, begin_W, end_W], axis=1)


def _mlp(layer, config, y_DW):
  if config.n_experts: return transformer.mix_experts(config, y_DW.T, *layer["experts"]).T
  gate_up_2FW = jnp.einsum("cFD,DW->cFW", layer["gate_up_2FD"], y_DW)
  if config.mlp_bias: gate_up_2FW = gate_up_2FW + layer["gate_up_bias_2F1"]
  y_DW = layer["down_DF"] @ transformer.activate(config, *gate_up_2FW)
  return y_DW + layer["down_bias_D1"] if config.mlp_bias else y_DW


def _attention(layer, config, y_DW, turns_HW, attend, axes_):
  """The output of the sublayer, and the suffix of its layer with the token's key and value.

  Args:
    attend: (q, k, v) -> out_WKRH, suffix_k_WKnHt, suffix_v_WKTH.
    axes_: "KAHW" or "WKAH", those of q, k and v; A is 1 for k and v.
  """
  r, a, h = config.n_heads // config.kv_heads, axes_.index("A"), axes_.index("H")
  place = lambda x_KAHW: jnp.moveaxis(x_KAHW, -1, axes_.index("W"))
  qkv = jnp.einsum(f"KAHD,DW->{axes_}", layer["qkv_KAHD"], y_DW)
  if config.qkv_bias: qkv = qkv + place(layer["bias_KAH1"])
  q, k, v = jnp.split(qkv, [r, r + 1], axis=a)
  if config.qk_norm:
    norm = lambda x, name: transformer.rms_norm(
        x, place(layer[name]), config.norm_eps,
        axis=h if config.qk_norm == "head" else tuple(axes_.index(axis) for axis in "KAH"))
    q, k = norm(q, "q_norm_KAH1"), norm(k, "k_norm_KAH1")
  q, k = (transformer.rotate(x, tuple(place(t[None, None]) for t in turns_HW), axis=h)
          for x in (q, k))
  out_WKRH, *suffix_kv = attend(q, k, v)
  out_DW = jnp.einsum("DN,NW->DW", layer["out_DNH"].reshape(y_DW.shape[0], -1),
                      out_WKRH.astype(y_DW.dtype).reshape(y_DW.shape[1], -1).T)
  if config.o_bias: out_DW = out_DW + layer["out_bias_D1"]
  return out_DW, *suffix_kv


def _attend_fused(config, kv, bounds_W4, column, q_WKRH, k_WK1H, v_WK1H):
  """`_attend_parts` as one kernel, for one token per row."""
  prompt_k_PKnHx, prompt_v_PKXH, suffix_k_WKnHt, suffix_v_WKTH = kv
  out_WKRH, k_WKHT, v_WKTH = decode_kernel.attend(
      jnp.concatenate([q_WKRH, k_WK1H, v_WK1H], axis=2), prompt_k_PKnHx[:, :, 0], prompt_v_PKXH,
      suffix_k_WKnHt[:, :, 0], suffix_v_WKTH, bounds_W4, column,
      scale=transformer.attn_scale(config), softcap=config.attn_softcap,
      interpret=transformer.platform(config) != "gpu")
  return out_WKRH, k_WKHT[:, :, None], v_WKTH


def _attend_parts(config, kv, masks, column, q_KRHW, k_K1HW, v_K1HW):
  """Attention of each row to its prompt, its suffix and the token, which is written to `column`."""
  mask_WX, mask_WT = masks
  prompt_k_PKnHx, prompt_v_PKXH, suffix_k_WKnHt, suffix_v_WKTH = kv
  k_KHW, v_KHW = k_K1HW[:, 0], v_K1HW[:, 0]
  k, r, h, w = q_KRHW.shape
  p, x = prompt_v_PKXH.shape[0], prompt_v_PKXH.shape[2]
  g, dtype = w // p, q_KRHW.dtype
  float_ = dict(preferred_element_type=transformer.widen(dtype))
  def scores(q_KQH, k_KnHt, columns):
    # The queries are repeated so that tiles are a batch axis; otherwise XLA transposes all
    # keys first.
    shape = (*k_KnHt.shape[:3], *q_KQH.shape[2:])
    q_KnQH = jnp.broadcast_to(q_KQH[:, :, None], shape)
    return _untile(jnp.einsum("WKnQH,WKnHt->WKnQt", q_KnQH, k_KnHt, **float_), columns)

  # Written before it is read: the old suffix then has one use, and XLA does not copy it.
  m, columns, tile = suffix_v_WKTH.shape[0], suffix_v_WKTH.shape[2], suffix_k_WKnHt.shape[4]
  write = jax.lax.dynamic_update_slice
  if m == w:
    suffix_k_WKnHt = write(suffix_k_WKnHt, k_KHW.transpose(2, 0, 1)[:, :, None, :, None],
                           (0, 0, column // tile, 0, column % tile))
    suffix_v_WKTH = write(suffix_v_WKTH, v_KHW.transpose(2, 0, 1)[:, :, None], (0, 0, column, 0))
  else:  # Columns of several tiles.
    k_MKHC, v_MKCH = (x_KHW.reshape(k, h, m, -1).transpose(2, 0, *axes_) for x_KHW, axes_ in (
        (k_KHW, (1, 3)), (v_KHW, (3, 1))))
    suffix_k_WKnHt = _tile(config, write(_untile(suffix_k_WKnHt, columns), k_MKHC,
                                         (0, 0, 0, column)))
    suffix_v_WKTH = write(suffix_v_WKTH, v_MKCH, (0, 0, column, 0))

  # All rows of a prompt and all queries of a key-value head read its keys at once.
  q_PKQH = q_KRHW.reshape(k, r, h, p, g).transpose(3, 0, 4, 1, 2).reshape(p, k, g * r, h)
  # So do the tokens of a row of the suffix.
  by_token = lambda x_MKQ: x_MKQ.reshape(m, k, w // m, r, -1).swapaxes(1, 2).reshape(w, k, r, -1)
  by_suffix = lambda x_WKR: x_WKR.reshape(m, w // m, k, r, -1).swapaxes(1, 2).reshape(
      m, k, w // m * r, -1)
  q_WKRH = q_KRHW.transpose(3, 0, 1, 2)
  prompt_PKQX = scores(q_PKQH, prompt_k_PKnHx, x)
  suffix_WKRT = by_token(scores(by_suffix(q_WKRH), suffix_k_WKnHt, columns))
  # The two parts keep their layouts; only their largest scores and sums meet.
  by_row = lambda x: x.reshape(p, k, g, r, -1).swapaxes(1, 2).reshape(w, k, r, -1)
  by_prompt = lambda x: x.reshape(p, g, k, r, -1).swapaxes(1, 2).reshape(p, k, g * r, -1)
  def mask_scores(scores, mask):
    scores = attention.soft_cap(scores * transformer.attn_scale(config), config.attn_softcap)
    return jnp.where(mask, scores, -jnp.inf)
  mask_PQX = jnp.repeat(mask_WX.reshape(p, g, x), r, axis=1)
  prompt_PKQX = mask_scores(prompt_PKQX, mask_PQX[:, None])
  suffix_WKRT = mask_scores(suffix_WKRT, mask_WT[:, None, None])
  over = dict(axis=-1, keepdims=True)
  most_WKR1 = jnp.maximum(by_row(jnp.max(prompt_PKQX, **over)), jnp.max(suffix_WKRT, **over))
  mass_PKQX = jnp.exp(prompt_PKQX - by_prompt(most_WKR1))
  mass_WKRT = jnp.exp(suffix_WKRT - most_WKR1)
  total_WKR1 = by_row(jnp.sum(mass_PKQX, **over)) + jnp.sum(mass_WKRT, **over)
  out_PKQH = jnp.einsum("PKQX,PKXH->PKQH", mass_PKQX.astype(dtype), prompt_v_PKXH, **float_)
  out_WKRH = by_token(jnp.einsum(
      "WKRT,WKTH->WKRH", by_suffix(mass_WKRT).astype(dtype), suffix_v_WKTH, **float_))
  return (by_row(out_PKQH) + out_WKRH) / total_WKR1, suffix_k_WKnHt, suffix_v_WKTH
