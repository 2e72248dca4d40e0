"""One-token attention of grouped queries as one kernel for NVIDIA GPUs (Pallas, lowered to Triton).

Each program is one row and one key-value head. It writes the token's key and value into the cache
and reads the columns of the row's prompt and suffix that the bounds allow, in blocks, with the
running maximum and sum of flash attention. Rows of a prompt follow each other, so that its keys
and values are read from memory once and then from the cache of the chip.
"""
import functools

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
import jax.numpy as jnp
import numpy as np

_ROWS = 16  # A product on tensor cores has at least as many rows.


def lacks(*, head_dim: int, dtype: str, devices: int) -> str | None:
  """What of a model the kernel cannot compute; None if it can compute all."""
  if dtype != "bfloat16": return f"needs model.dtype=bfloat16, not {dtype}"
  if head_dim not in (16, 32, 64, 128, 256):
    return f"needs head_dim to be a power of 2 from 16 to 256, not {head_dim}"
  return "needs mesh.tensor=1" if devices > 1 else None


def find_fault(*, group: int, head_dim: int, interpret: bool = False) -> str | None:
  """What goes wrong with the kernel on the default device; None if it computes what it should.

  A row with a prompt and a suffix is compared with softmax in float32. A run tries this once before
  it relies on the kernel: Triton's versions, and the devices that they know, differ.

  Args:
    group, head_dim: queries of a key-value head, and the size of each.
  """
  x, t, column = 70, 64, 20
  rng, dtype = np.random.default_rng(0), jnp.bfloat16
  normal = lambda *shape: np.asarray(rng.standard_normal(shape, np.float32), dtype)
  qkv_WKAH = normal(2, 1, group + 2, head_dim)
  prompt_k_PKXH, prompt_v_PKXH = normal(2, 2, 1, x, head_dim)
  suffix_k_WKTH, suffix_v_WKTH = normal(2, 2, 1, t, head_dim)
  bounds_W4 = np.array([[3, x, 0, column], [0, 40, 2, column]])
  scale = head_dim ** -.5
  try:
    out_WKRH, _, new_v_WKTH = jax.device_get(jax.jit(functools.partial(
        attend, scale=scale, interpret=interpret))(
            qkv_WKAH, prompt_k_PKXH.swapaxes(2, 3), prompt_v_PKXH, suffix_k_WKTH.swapaxes(2, 3),
            suffix_v_WKTH, bounds_W4, np.int32(column)))
  except Exception as e:  # Whatever a compiler or driver raises.
    return f"does not compile here ({type(e).__name__}: {str(e).strip().splitlines()[0]:.80})"
  wide = lambda x: np.asarray(x, np.float32)
  faults = [np.abs(wide(new_v_WKTH[:, 0, column]) - wide(qkv_WKAH[:, 0, group + 1]))]
  for row, (start, stop, first, last) in enumerate(bounds_W4):
    q_RH, own_k_1H, own_v_1H = np.split(wide(qkv_WKAH[row, 0]), [group, group + 1])
    join = lambda prompt, suffix, own: np.concatenate([
        wide(prompt[row, 0, start:stop]), wide(suffix[row, 0, first:last]), own])
    mass_RC = np.exp(scale * q_RH @ join(prompt_k_PKXH, suffix_k_WKTH, own_k_1H).T)
    want_RH = mass_RC / mass_RC.sum(1, keepdims=True) @ join(
        prompt_v_PKXH, suffix_v_WKTH, own_v_1H)
    faults.append(np.abs(want_RH - wide(out_WKRH[row, 0])))
  worst = np.max([x.max() for x in faults])  # NaN, if there is one.
  return None if worst < 0.05 else f"is wrong by {worst:.2g} here"


def attend(qkv_WKAH, prompt_k_PKHX, prompt_v_PKXH, suffix_k_WKHT, suffix_v_WKTH, bounds_W4, column,
           *, scale, softcap=None, interpret=False, block=64, num_warps=4, num_stages=3):
  """Attention of one token per row to its prompt, its suffix and itself.

    out = softmax(scale q k^T) v, over the prompt's columns in [b0, b1), the suffix's in [b2, b3)
    and the token itself; scores become softcap tanh(scores / softcap) if softcap is not None

  Scores, maxima and sums are float32; the products have factors of the dtype of the cache.

  Args:
    qkv_WKAH: R queries of each key-value head, its key and its value; positions are in them.
    prompt_k_PKHX, prompt_v_PKXH: of P prompts; row p * (W / P) + g has prompt p.
    suffix_k_WKHT, suffix_v_WKTH: the key and the value are written to `column`, in place.
    bounds_W4: int32, b of each row. `column` is not within [b2, b3).
    interpret: run on a CPU, slowly.
    block: columns that a program reads at once.
    num_warps, num_stages: of `triton.CompilerParams`.
  Returns:
    out_WKRH, suffix_k_WKHT, suffix_v_WKTH.
  """
  w, kv_heads, a, h = qkv_WKAH.shape
  x, t = prompt_v_PKXH.shape[2], suffix_v_WKTH.shape[2]
  group = w // prompt_v_PKXH.shape[0]
  queries = max(_ROWS, 1 << (a - 1).bit_length())
  own = lambda *shape: pl.BlockSpec((None, None, *shape), lambda row, head: (row, head, 0, 0))
  shared = lambda *shape: pl.BlockSpec((None, None, *shape),
                                       lambda row, head: (row // group, head, 0, 0))
  up = lambda n: -(-n // block) * block
  suffix = [own(h, up(t)), own(up(t), h)]
  return pl.pallas_call(
      functools.partial(_attend_row, r=a - 2, widths=(x, t), block=block, scale=scale,
                        softcap=softcap),
      grid=(w, kv_heads),
      in_specs=[own(queries, h), shared(h, up(x)), shared(up(x), h), *suffix,
                pl.BlockSpec((None, 4), lambda row, head: (row, 0)),
                pl.BlockSpec((1,), lambda row, head: (0,))],
      out_specs=[own(queries, h), *suffix],
      out_shape=[jax.ShapeDtypeStruct((w, kv_heads, a - 2, h), qkv_WKAH.dtype),
                 *(jax.ShapeDtypeStruct(s.shape, s.dtype) for s in (suffix_k_WKHT, suffix_v_WKTH))],
      input_output_aliases={3: 1, 4: 2}, interpret=interpret, name="decode_attention",
      compiler_params=triton.CompilerParams(num_warps=num_warps, num_stages=num_stages))(
          qkv_WKAH, prompt_k_PKHX, prompt_v_PKXH, suffix_k_WKHT, suffix_v_WKTH, bounds_W4,
          jnp.reshape(column, 1))


def _attend_row(qkv_AH, prompt_k_HX, prompt_v_XH, suffix_k_HT, suffix_v_TH, bounds_4, column_1,
                out_RH, new_k_HT, new_v_TH, *, r, widths, block, scale, softcap):
  is_query_Q1 = (jnp.arange(out_RH.shape[0]) < r)[:, None]
  q_QH = triton.load(qkv_AH, mask=is_query_Q1, other=0)
  k_H, v_H, column = qkv_AH[r, :], qkv_AH[r + 1, :], column_1[0]
  new_k_HT[:, column] = k_H
  new_v_TH[column, :] = v_H
  cap = lambda scores: scores if softcap is None else softcap * jnp.tanh(scores / softcap)
  exact = jax.lax.Precision.HIGHEST if q_QH.dtype == jnp.float32 else None
  multiply = functools.partial(jnp.dot, precision=exact, preferred_element_type=jnp.float32)
  wide = lambda x: x.astype(jnp.float32)

  def add_block(i, carry, k_HS, v_SH, width, start, stop):
    out_QH, most_Q, total_Q = carry
    columns_C, columns = i * block + jnp.arange(block), pl.ds(i * block, block)
    # Only with a bound that the compiler knows is a load of several columns one instruction.
    read = lambda ref, mask: triton.load(ref, **(
        dict(mask=mask, other=0) if width % block else {}))
    k_HC = read(k_HS.at[:, columns], (columns_C < width)[None, :])
    v_CH = read(v_SH.at[columns, :], (columns_C < width)[:, None])
    scores_QC = cap(scale * multiply(q_QH, k_HC))
    is_live_1C = ((columns_C >= start) & (columns_C < stop))[None, :]
    scores_QC = jnp.where(is_live_1C, scores_QC, -jnp.inf)
    higher_Q = jnp.maximum(most_Q, jnp.max(scores_QC, axis=1))
    mass_QC = jnp.exp(scores_QC - higher_Q[:, None])
    less_Q = jnp.exp(most_Q - higher_Q)
    return (less_Q[:, None] * out_QH + multiply(mass_QC.astype(v_CH.dtype), v_CH), higher_Q,
            less_Q * total_Q + jnp.sum(mass_QC, axis=1))

  most_Q = cap(scale * jnp.sum(wide(q_QH) * wide(k_H)[None, :], axis=1))
  carry = (jnp.broadcast_to(wide(v_H)[None, :], q_QH.shape), most_Q, jnp.ones_like(most_Q))
  for part, (k_HS, v_SH) in enumerate(((prompt_k_HX, prompt_v_XH), (suffix_k_HT, suffix_v_TH))):
    start, stop = bounds_4[2 * part], bounds_4[2 * part + 1]
    carry = jax.lax.fori_loop(
        start // block, pl.cdiv(stop, block), functools.partial(
            add_block, k_HS=k_HS, v_SH=v_SH, width=widths[part], start=start, stop=stop), carry)
  out_QH, _, total_Q = carry
  triton.store(out_RH, (out_QH / total_Q[:, None]).astype(out_RH.dtype), mask=is_query_Q1)
