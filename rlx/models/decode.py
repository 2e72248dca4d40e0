"""The same decoder, one token per row, for sampling.

A decode step multiplies few rows by every weight, so it is laid out for that:
activations are [D, W] (features first, W rows decoded at once), weights are
[out, in], query, key and value projections are one matrix, as are gate and up,
and each layer is an array of its own. On 2 CPU cores, 8 to 64 rows of 512
features through an MLP take 0.65 to 0.8 of the time of [W, D] x [in, out]; slices of
stacked layers would be copied in every step (1.3 to 1.7 times its time).

Keys lie as [.., K, H, T] and values as [.., K, T, H], the layouts in which both
matmuls of attention read memory in order.
"""
import flax.struct
import jax
import jax.numpy as jnp

from rlx.core import axes
from rlx.models import lora
from rlx.models import transformer


@flax.struct.dataclass
class Prompts:
  """Keys and values of P prompts; row p * (W / P) + g attends to prompt p.

  One array per layer, here and in Suffix.
  """
  k_PKHX: list
  v_PKXH: list
  valid_PX: jax.Array  # bool


@flax.struct.dataclass
class Suffix:
  """Keys and values of what each of the W rows has been fed since. Written in place."""
  k_WKHT: list
  v_WKTH: list


def lay_out(params, config):
  """Parameters -> what `step` reads, in the dtype of the activations.

  Adapters are merged. The tables stay as they are; the layers are copied, which takes about as long
  as one decode step.
  """
  params = lora.merge(params, config.lora_scale)
  cast = lambda x: x.astype(config.dtype)
  d = config.d_model
  def layer(i):
    attn, mlp = ({k: v[i] for k, v in params["layers"][m].items() if not isinstance(v, dict)}
                 for m in ("attn", "mlp"))
    # Heads as [K, R + 2]: each kv head's queries, then its key and its value.
    def heads(q_DNH, k_DKH, v_DKH):
      q_DKRH = q_DNH.reshape(*q_DNH.shape[:-2], config.n_kv_heads, -1, config.head_dim)
      return jnp.concatenate(
          [q_DKRH, k_DKH[..., None, :], v_DKH[..., None, :]], axis=-2)
    w = dict(
        qkv_KMHD=cast(jnp.moveaxis(
            heads(attn["q_LDNH"], attn["k_LDKH"], attn["v_LDKH"]), 0, -1)),
        out_DNH=cast(jnp.moveaxis(attn["o_LNHD"], -1, 0)),
        gate_up_EFD=cast(jnp.stack([mlp["gate_LDF"].T, mlp["up_LDF"].T])),
        down_DF=cast(mlp["down_LFD"].T),
        attn_norm_D1=params["layers"]["attn_norm"]["scale_LD"][i][:, None],
        mlp_norm_D1=params["layers"]["mlp_norm"]["scale_LD"][i][:, None])
    if config.qkv_bias:
      w["bias_KMH1"] = cast(heads(attn["q_bias_LNH"], attn["k_bias_LKH"],
                                  attn["v_bias_LKH"]))[..., None]
    if config.qk_norm:
      for name in ("q_norm", "k_norm"):
        w[name] = params["layers"]["attn"][name]["scale_LH"][i][:, None]
    return w
  embed_VD = cast(params["embed"]["w_VD"])
  return dict(
      embed_VD=embed_VD,
      head_VD=embed_VD if config.tied_head else cast(params["head"]["w_DV"].T),
      norm_D1=params["norm"]["scale_D"].reshape(d, 1),
      layers=[layer(i) for i in range(config.n_layers)])


def prompts(params, config, tokens_PX, prompt_len_P):
  """Prompts of left-padded tokens, without the last token of each.

  The last token is the first that each completion feeds to `step`.
  """
  sizes = axes.dims(tokens_PX=tokens_PX, prompt_len_P=prompt_len_P)
  columns_1X = jnp.arange(sizes["X"])[None, :]
  start_P1 = (sizes["X"] - prompt_len_P)[:, None]
  valid_PX = columns_1X >= start_P1
  k_LPXKH, v_LPXKH = transformer.prefill(
      params, config, tokens_PX, jnp.maximum(columns_1X - start_P1, 0), valid_PX)
  return Prompts(k_PKHX=list(k_LPXKH.transpose(0, 1, 3, 4, 2)),
                 v_PKXH=list(v_LPXKH.transpose(0, 1, 3, 2, 4)),
                 valid_PX=valid_PX & (columns_1X < sizes["X"] - 1))


def empty_suffix(config, rows, width):
  """A Suffix of `width` columns for `rows` rows."""
  k, h = config.n_kv_heads, config.head_dim
  zeros = lambda *shape: [transformer.pinned(jnp.zeros(shape, config.dtype), config.heads)
                          for _ in range(config.n_layers)]
  return Suffix(k_WKHT=zeros(rows, k, h, width), v_WKTH=zeros(rows, k, width, h))


def step(weights, config, tokens_W, positions_W, prompts_, suffix, live_WT, column):
  """One token per row, attending to its prompt, its live suffix and itself.

  Args:
    weights: from `lay_out`.
    config: DecoderConfig.
    tokens_W, positions_W: int32, the tokens fed and their positions.
    prompts_: Prompts.
    suffix: Suffix; this token's keys and values go to column `column`.
    live_WT: bool, the suffix columns that hold tokens of the row, `column` included.
  Returns:
    logits_WV, suffix.
  """
  axes.dims(tokens_W=tokens_W, positions_W=positions_W, live_WT=live_WT)
  turns_HW = tuple(x.T for x in transformer.rotations(config, positions_W))
  rows = tokens_W.shape[0] // prompts_.valid_PX.shape[0]
  mask_WS = jnp.concatenate(
      [jnp.repeat(prompts_.valid_PX, rows, axis=0), live_WT], axis=1)
  x_DW = weights["embed_VD"][tokens_W].T
  written = Suffix([], [])
  for layer, *kv in zip(weights["layers"], prompts_.k_PKHX, prompts_.v_PKXH,
                        suffix.k_WKHT, suffix.v_WKTH):
    y_DW = transformer.rms_norm(x_DW, layer["attn_norm_D1"], config.norm_eps, axis=0)
    y_DW, k_WKHT, v_WKTH = _attention(layer, config, y_DW, turns_HW, kv, mask_WS, column)
    written.k_WKHT.append(k_WKHT)
    written.v_WKTH.append(v_WKTH)
    x_DW = x_DW + y_DW
    y_DW = transformer.rms_norm(x_DW, layer["mlp_norm_D1"], config.norm_eps, axis=0)
    gate_FW, up_FW = jnp.einsum("EFD,DW->EFW", layer["gate_up_EFD"], y_DW)
    x_DW = x_DW + layer["down_DF"] @ (jax.nn.silu(gate_FW) * up_FW)
  x_DW = transformer.rms_norm(x_DW, weights["norm_D1"], config.norm_eps, axis=0)
  logits_VW = jnp.matmul(weights["head_VD"], x_DW,
                         preferred_element_type=transformer.wide(config.dtype))
  return logits_VW.T, written


def _attention(layer, config, y_DW, turns_HW, kv, mask_WS, column):
  prompt_k_PKHX, prompt_v_PKXH, suffix_k_WKHT, suffix_v_WKTH = kv
  k, h, w = config.n_kv_heads, config.head_dim, y_DW.shape[1]
  p, x = prompt_k_PKHX.shape[0], prompt_k_PKHX.shape[3]
  r, g = config.n_heads // k, w // p
  float_ = dict(preferred_element_type=transformer.wide(y_DW.dtype))

  qkv_KMHW = jnp.einsum("KMHD,DW->KMHW", layer["qkv_KMHD"], y_DW)
  if config.qkv_bias: qkv_KMHW = qkv_KMHW + layer["bias_KMH1"]
  q_KRHW, k_KHW, v_KHW = qkv_KMHW[:, :r], qkv_KMHW[:, r], qkv_KMHW[:, r + 1]
  if config.qk_norm:
    q_KRHW = transformer.rms_norm(q_KRHW, layer["q_norm"][None, None], config.norm_eps, axis=2)
    k_KHW = transformer.rms_norm(k_KHW, layer["k_norm"][None], config.norm_eps, axis=1)
  q_KRHW = transformer.rotate(q_KRHW, tuple(t[None, None] for t in turns_HW), axis=2)
  k_KHW = transformer.rotate(k_KHW, tuple(t[None] for t in turns_HW), axis=1)

  # Written before it is read: the old suffix has one use, so no copy is made.
  write = jax.lax.dynamic_update_slice_in_dim
  suffix_k_WKHT = write(suffix_k_WKHT, k_KHW.transpose(2, 0, 1)[..., None], column, axis=3)
  suffix_v_WKTH = write(suffix_v_WKTH, v_KHW.transpose(2, 0, 1)[:, :, None], column, axis=2)

  # All rows of a prompt and all queries of a kv head read its keys at once.
  q_PKMH = q_KRHW.reshape(k, r, h, p, g).transpose(3, 0, 4, 1, 2).reshape(p, k, g * r, h)
  q_WKRH = q_KRHW.transpose(3, 0, 1, 2)
  prompt_PKMX = jnp.einsum("PKMH,PKHX->PKMX", q_PKMH, prompt_k_PKHX, **float_)
  suffix_WKRT = jnp.einsum("WKRH,WKHT->WKRT", q_WKRH, suffix_k_WKHT, **float_)
  prompt_WKRX = prompt_PKMX.reshape(p, k, g, r, x).swapaxes(1, 2).reshape(w, k, r, x)
  scores_WKRS = jnp.concatenate([prompt_WKRX, suffix_WKRT], axis=-1) * h**-0.5
  scores_WKRS = jnp.where(mask_WS[:, None, None], scores_WKRS, -jnp.inf)
  mass_WKRS = jnp.exp(scores_WKRS - jnp.max(scores_WKRS, axis=-1, keepdims=True))
  total_WKR1 = jnp.sum(mass_WKRS, axis=-1, keepdims=True)
  mass_WKRX, mass_WKRT = jnp.split(mass_WKRS.astype(y_DW.dtype), [x], axis=-1)
  mass_PKMX = mass_WKRX.reshape(p, g, k, r, x).swapaxes(1, 2).reshape(p, k, g * r, x)
  out_PKMH = jnp.einsum("PKMX,PKXH->PKMH", mass_PKMX, prompt_v_PKXH, **float_)
  out_WKRH = (out_PKMH.reshape(p, k, g, r, h).swapaxes(1, 2).reshape(w, k, r, h)
              + jnp.einsum("WKRT,WKTH->WKRH", mass_WKRT, suffix_v_WKTH, **float_)
              ) / total_WKR1
  out_DW = jnp.einsum("DN,NW->DW", layer["out_DNH"].reshape(y_DW.shape[0], -1),
                      out_WKRH.astype(y_DW.dtype).reshape(w, -1).T)
  return out_DW, suffix_k_WKHT, suffix_v_WKTH
