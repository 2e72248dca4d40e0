"""Attention of whole sequences, causal and within segments, by one of three kernels.

  blocks   plain XLA, on all devices
  cudnn    flash attention on NVIDIA GPUs, in bfloat16; each row is one sequence from column 0 on
  splash   flash attention on TPUs; interpreted, which is slow, on other devices

`prepare` computes the mask once for all layers, `attend` is called in each layer. Flash attention
has no mask of [Q, S] in memory: it gets segment numbers or the lengths of rows. It has one window
for all layers.
"""
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

KINDS = ("blocks", "cudnn", "splash")
CHOICES = ("auto", *KINDS)  # of a config
_TILE = 128  # Splash attention pads rows to a multiple of it.


class Forked(NamedTuple):
  """Masks for rows that continue trunks, with all tokens of a device in one list."""
  trunk_PQS: Any  # mask of trunks
  row_BQS: Any    # mask of rows; S counts the keys of a row's trunk, then its own
  trunk_OB: Any   # row -> its trunk, for each device


def prepare(kind, valid_BS, segments_BS=None, branches_BS=None, *, positions_BS=None,
            window=0, trunks=None):
  """The mask of attention, in the form that the kernel takes.

  Args:
    kind: one of KINDS.
    valid_BS, segments_BS, branches_BS, positions_BS, trunks: see `transformer.hidden`.
    window: the last positions that a token attends to, its own included; 0: all, and
      positions are not needed.
  Returns:
    mask_BQS; for splash, segment numbers; for cudnn, the numbers of tokens; with trunks, Forked.
  Raises:
    ValueError: branches or trunks with splash or cudnn.
  """
  if kind != "blocks" and (branches_BS is not None or trunks is not None):
    raise ValueError(f"attention={kind!r} has no branches and no trunks.")
  if kind == "cudnn": return jnp.sum(valid_BS, axis=1, dtype=jnp.int32)
  if kind == "splash": return jnp.where(valid_BS, 0 if segments_BS is None else segments_BS, -1)
  columns_S = jnp.arange(valid_BS.shape[1])
  mask_BQS = (columns_S[:, None] >= columns_S[None, :])[None] & valid_BS[:, None, :]
  if window:
    mask_BQS &= positions_BS[:, :, None] - positions_BS[:, None, :] < window
  if segments_BS is not None:
    mask_BQS &= segments_BS[:, :, None] == segments_BS[:, None, :]
  if branches_BS is not None:
    mask_BQS &= ((branches_BS[:, :, None] == branches_BS[:, None, :])
                 | (branches_BS == 0)[:, None, :])
  if trunks is None: return mask_BQS
  trunk_PQS = prepare(kind, trunks.valid_PX, positions_BS=trunks.positions_PX, window=window)
  of_trunk = lambda x_PX: copy_to_rows(x_PX, trunks.trunk_OB)[:, None, :]
  trunk_BQX = jnp.broadcast_to(of_trunk(trunks.valid_PX), (*valid_BS.shape, trunk_PQS.shape[1]))
  if window:
    trunk_BQX &= positions_BS[:, :, None] - of_trunk(trunks.positions_PX) < window
  return Forked(trunk_PQS, jnp.concatenate([trunk_BQX, mask_BQS], axis=2), trunks.trunk_OB)


def copy_to_rows(x_P, trunk_OB):
  """x of each row's trunk; trunks and rows are those of the device."""
  if len(trunk_OB) == 1: return x_P[trunk_OB[0]]
  x_BX = jax.vmap(lambda x_P, trunk_B: x_P[trunk_B])(
      x_P.reshape(len(trunk_OB), -1, *x_P.shape[1:]), trunk_OB)
  return x_BX.reshape(-1, *x_P.shape[1:])


def attend(kind, q_BQNH, k_BSKH, v_BSKH, prepared, *, scale, softcap=None, window=0, platform=None):
  """out_BQNH = softmax(scale q k^T) v, where the softmax is over the keys that the mask allows.

  The queries are at the last Q of the S columns. The output of a query without keys is finite.
  Scores and softmax are float32, or float64 if the queries are.

  Args:
    prepared: from `prepare`. With Forked, q, k and v have one row of tokens for each device:
      those of the trunks, then those of the rows.
    softcap: scores become softcap tanh(scores / softcap); not with cudnn.
    window: as in `prepare`; the mask of blocks has it already.
    platform: of the devices; splash is interpreted on others than tpu.
  """
  if isinstance(prepared, Forked):
    return _attend_with_trunks(kind, q_BQNH, k_BSKH, v_BSKH, prepared, scale, softcap)
  if kind == "blocks": return _blocks(q_BQNH, k_BSKH, v_BSKH, prepared, scale, softcap)
  if kind == "cudnn": return _cudnn(q_BQNH, k_BSKH, v_BSKH, prepared, scale, window)
  return _splash(q_BQNH, k_BSKH, v_BSKH, prepared, scale, softcap, window, platform)


def soft_cap(x, cap):
  """cap tanh(x / cap); x if cap is None."""
  return x if cap is None else cap * jnp.tanh(x / cap)


def multiply(spec, a, b):
  """einsum(spec, a, b), summed and returned in float32 or wider, for factors of one dtype.

  The gradient is rounded to their dtype before it is multiplied. JAX would multiply it as float32
  with bfloat16 factors, which GPUs do as TF32, at less than half the speed.
  """
  product, wide = functools.partial(jnp.einsum, spec), jnp.promote_types(a.dtype, jnp.float32)
  in_wide = functools.partial(product, preferred_element_type=wide)
  if a.dtype == wide: return in_wide(a, b)
  narrow_gradient = jax.custom_vjp(in_wide)
  narrow_gradient.defvjp(lambda *factors: (in_wide(*factors), factors),
                         lambda factors, d: jax.vjp(product, *factors)[1](d.astype(a.dtype)))
  return narrow_gradient(a, b)


def _attend_with_trunks(kind, q_OQNH, k_OQKH, v_OQKH, prepared, scale, softcap):
  shards, sizes = len(prepared.trunk_OB), [mask.shape[:2] for mask in prepared[:2]]
  def parts(x_OQNH):
    cut = jnp.split(x_OQNH, [math.prod(sizes[0]) // shards], axis=1)
    return [x.reshape(*size, *x.shape[2:]) for x, size in zip(cut, sizes)]
  def append_rows(x_OQKH):
    trunk_PXKH, row_BQKH = parts(x_OQKH)
    return trunk_PXKH, jnp.concatenate(
        [copy_to_rows(trunk_PXKH, prepared.trunk_OB), row_BQKH], axis=1)
  outputs = [attend(kind, *qkv, mask, scale=scale, softcap=softcap) for *qkv, mask in zip(
      parts(q_OQNH), append_rows(k_OQKH), append_rows(v_OQKH), prepared[:2])]
  return jnp.concatenate([x.reshape(shards, -1, *x.shape[2:]) for x in outputs], axis=1)


def _blocks(q_BQNH, k_BSKH, v_BSKH, mask_BQS, scale, softcap):
  b, q, n, h = q_BQNH.shape
  s, k = k_BSKH.shape[1:3]
  wide = jnp.promote_types(q_BQNH.dtype, jnp.float32)
  # With the axis of heads first, forward and backward on CPU are 1.1-1.5 times faster than
  # einsums over this layout or `jax.nn.dot_product_attention`.
  q_BKRQH = q_BQNH.reshape(b, q, k, n // k, h).transpose(0, 2, 3, 1, 4)
  k_BKSH, v_BKSH = k_BSKH.swapaxes(1, 2), v_BSKH.swapaxes(1, 2)

  def block(start, end):
    seen = s - q + end
    scores_BKRQS = scale * multiply(
        "BKRQH,BKSH->BKRQS", q_BKRQH[..., start:end, :], k_BKSH[:, :, :seen])
    scores_BKRQS = soft_cap(scores_BKRQS, softcap)
    mask_B11QS = mask_BQS[:, None, None, start:end, :seen]
    weights_BKRQS = jax.nn.softmax(
        jnp.where(mask_B11QS, scores_BKRQS, jnp.finfo(wide).min), axis=-1)
    return jnp.einsum("BKRQS,BKSH->BKRQH", weights_BKRQS.astype(q_BQNH.dtype), v_BKSH[:, :, :seen])

  # A block of queries skips the columns after its last query. At [32, 192, 8, 64] with 4
  # key-value heads, on two busy CPU cores: forward 268 -> 133 ms, with backward 505 -> 315;
  # blocks of 32 or 96 and a custom VJP are no faster.
  width = 64 * -(-q // 512)  # At most eight blocks.
  out_BKRQH = jnp.concatenate([block(i, min(i + width, q)) for i in range(0, q, width)], axis=3)
  return out_BKRQH.transpose(0, 3, 1, 2, 4).reshape(b, q, n, h)


def _cudnn(q_BSNH, k_BSKH, v_BSKH, len_B, scale, window):
  valid_BS11 = (jnp.arange(q_BSNH.shape[1])[None] < len_B[:, None])[..., None, None]
  # What the kernel leaves on padding, forward and backward, must not be read.
  kept = lambda x_BSNH: jnp.where(valid_BS11, x_BSNH, 0)
  lengths_B = jnp.maximum(len_B, 1)
  return kept(jax.nn.dot_product_attention(
      kept(q_BSNH), kept(k_BSKH), kept(v_BSKH), scale=scale, is_causal=True,
      query_seq_lengths=lengths_B, key_value_seq_lengths=lengths_B,
      local_window_size=(window - 1, 0) if window else None, implementation="cudnn"))


def _splash(q_BQNH, k_BSKH, v_BSKH, segments_BS, scale, softcap, window, platform):
  # pylint: disable-next=g-import-not-at-top
  from jax.experimental.pallas.ops.tpu import splash_attention as splash
  s, n = q_BQNH.shape[1:3]
  wider = -s % _TILE
  def heads_first(x_BSNH):
    return jnp.pad(x_BSNH, ((0, 0), (0, wider), (0, 0), (0, 0))).swapaxes(1, 2)
  segments_BS = jnp.pad(segments_BS, ((0, 0), (0, wider)), constant_values=-1)
  square = s + wider, s + wider
  mask = (splash.LocalMask(square, (window - 1, 0), 0) if window else splash.CausalMask(square))
  run = splash.make_splash_mha(splash.MultiHeadMask([mask] * n), head_shards=1, q_seq_shards=1,
                               attn_logits_soft_cap=softcap, interpret=platform != "tpu")
  out_BNSH = jax.vmap(run)(heads_first(q_BQNH) * scale, heads_first(k_BSKH), heads_first(v_BSKH),
                           splash.SegmentIds(segments_BS, segments_BS))
  return out_BNSH.swapaxes(1, 2)[:, :s]
