"""Attention of whole sequences, causal and within segments, by one of three kernels.

  blocks   plain XLA, everywhere
  cudnn    flash attention on NVIDIA GPUs, in bfloat16
  splash   flash attention on TPUs; interpreted, and slow, elsewhere

`prepare` makes what all layers share, `attend` is called in each.
"""
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

KINDS = ("blocks", "cudnn", "splash")
_TILE = 128  # of splash: rows are padded to a multiple.


class Forked(NamedTuple):
  """Who attends to whom where rows go on from trunks, all in one list of tokens."""
  trunk_PQS: Any  # mask of trunks
  row_BQS: Any    # mask of rows: a row's keys come behind those of its trunk
  trunk_B: Any    # which one that is


def prepare(kind, valid_BS, segments_BS=None, branches_BS=None, *, positions_BS=None,
            window=0, trunks=None):
  """Who attends to whom, as the kernel wants it.

  Args:
    kind: one of KINDS.
    valid_BS, segments_BS, branches_BS, positions_BS, trunks: see `transformer.hidden`.
    window: how far back attention goes in positions, the token itself included; 0: to
      the start, and positions are not needed.
  Returns:
    mask_BQS, or for splash segment numbers, or with trunks Forked.
  Raises:
    ValueError: branches or trunks with splash, whose masks are equal numbers only.
  """
  if kind == "splash":
    if branches_BS is not None or trunks is not None:
      raise ValueError("Splash attention knows no branches and no trunks.")
    return jnp.where(valid_BS, 0 if segments_BS is None else segments_BS, -1)
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
  of_row = lambda x_PX: x_PX[trunks.trunk_B][:, None, :]
  trunk_BQX = jnp.broadcast_to(of_row(trunks.valid_PX),
                               (*valid_BS.shape, trunk_PQS.shape[1]))
  if window:
    trunk_BQX &= positions_BS[:, :, None] - of_row(trunks.positions_PX) < window
  return Forked(trunk_PQS, jnp.concatenate([trunk_BQX, mask_BQS], axis=2), trunks.trunk_B)


def attend(kind, q_BQNH, k_BSKH, v_BSKH, prepared, *, scale, softcap=None):
  """softmax(scale q k^T, over what is attended to) v: out_BQNH.

  The queries belong to the last Q of the S columns. A query without anything to attend
  to gets something finite. Scores and softmax are float32 or wider.

  Args:
    prepared: from `prepare`. With Forked all are lists of tokens, as one row: those of
      the trunks, then those of the rows.
    softcap: scores become softcap tanh(scores / softcap); with blocks only.
  """
  if isinstance(prepared, Forked):
    return _forked(kind, q_BQNH, k_BSKH, v_BSKH, prepared, scale, softcap)
  if kind == "blocks": return _blocks(q_BQNH, k_BSKH, v_BSKH, prepared, scale, softcap)
  return dict(cudnn=_cudnn, splash=_splash)[kind](q_BQNH, k_BSKH, v_BSKH, prepared, scale)


def capped(x, cap):
  """cap tanh(x / cap); x where there is no cap."""
  return x if cap is None else cap * jnp.tanh(x / cap)


def _forked(kind, q_1QNH, k_1QKH, v_1QKH, prepared, scale, softcap):
  sizes = [mask.shape[:2] for mask in prepared[:2]]
  def parts(x_1QNH):
    cut = jnp.split(x_1QNH[0], [math.prod(sizes[0])])
    return [x.reshape(*size, *x.shape[1:]) for x, size in zip(cut, sizes)]
  def continued(x_1QKH):
    trunk_PXKH, row_BQKH = parts(x_1QKH)
    return trunk_PXKH, jnp.concatenate([trunk_PXKH[prepared.trunk_B], row_BQKH], axis=1)
  found = [attend(kind, *qkv, mask, scale=scale, softcap=softcap) for *qkv, mask in zip(
      parts(q_1QNH), continued(k_1QKH), continued(v_1QKH), prepared[:2])]
  return jnp.concatenate([x.reshape(-1, *x.shape[2:]) for x in found])[None]


def _blocks(q_BQNH, k_BSKH, v_BSKH, mask_BQS, scale, softcap):
  b, q, n, h = q_BQNH.shape
  s, k = k_BSKH.shape[1:3]
  wide = jnp.promote_types(q_BQNH.dtype, jnp.float32)
  # Heads first: 1.1-1.5 times faster forward and backward on CPU than einsums
  # over this layout or `jax.nn.dot_product_attention`.
  q_BKRQH = q_BQNH.reshape(b, q, k, n // k, h).transpose(0, 2, 3, 1, 4)
  k_BKSH, v_BKSH = k_BSKH.swapaxes(1, 2), v_BSKH.swapaxes(1, 2)

  def block(start, end):
    seen = s - q + end
    scores_BKRQS = scale * jnp.einsum(
        "BKRQH,BKSH->BKRQS", q_BKRQH[..., start:end, :], k_BKSH[:, :, :seen],
        preferred_element_type=wide)
    scores_BKRQS = capped(scores_BKRQS, softcap)
    mask_B11QS = mask_BQS[:, None, None, start:end, :seen]
    weights_BKRQS = jax.nn.softmax(
        jnp.where(mask_B11QS, scores_BKRQS, jnp.finfo(wide).min), axis=-1)
    return jnp.einsum("BKRQS,BKSH->BKRQH", weights_BKRQS.astype(q_BQNH.dtype),
                      v_BKSH[:, :, :seen])

  # Blocks of queries leave out columns that all of them are too early for. At
  # [32, 192, 8, 64] with 4 kv heads, on two busy CPU cores: forward 268 -> 133 ms,
  # with backward 505 -> 315; blocks of 32 or 96 and a custom VJP are no faster.
  width = 64 * -(-q // 512)  # At most eight blocks.
  out_BKRQH = jnp.concatenate(
      [block(i, min(i + width, q)) for i in range(0, q, width)], axis=3)
  return out_BKRQH.transpose(0, 3, 1, 2, 4).reshape(b, q, n, h)


def _cudnn(q_BQNH, k_BSKH, v_BSKH, mask_BQS, scale):
  return jax.nn.dot_product_attention(
      q_BQNH, k_BSKH, v_BSKH, mask=mask_BQS[:, None], scale=scale, implementation="cudnn")


def _splash(q_BQNH, k_BSKH, v_BSKH, segments_BS, scale):
  from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel as kernel  # pylint: disable=g-import-not-at-top
  from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_mask as masks  # pylint: disable=g-import-not-at-top
  s, n = q_BQNH.shape[1:3]
  wider = -s % _TILE
  def heads_first(x_BSNH):
    return jnp.pad(x_BSNH, ((0, 0), (0, wider), (0, 0), (0, 0))).swapaxes(1, 2)
  segments_BS = jnp.pad(segments_BS, ((0, 0), (0, wider)), constant_values=-1)
  causal = masks.MultiHeadMask([masks.CausalMask((s + wider, s + wider))] * n)
  run = kernel.make_splash_mha(causal, head_shards=1, q_seq_shards=1,
                               interpret=jax.default_backend() != "tpu")
  out_BNSH = jax.vmap(run)(
      heads_first(q_BQNH) * scale, heads_first(k_BSKH), heads_first(v_BSKH),
      kernel.SegmentIds(segments_BS, segments_BS))
  return out_BNSH.swapaxes(1, 2)[:, :s]
