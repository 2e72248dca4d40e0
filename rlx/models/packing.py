"""Ragged rows in fewer token rows, so that padding costs next to nothing.

A plan is made on the host, from lengths alone. It lays the rows of a batch one
behind another into M rows of W columns; attention stays inside a row's own
segment. The hidden states that predict completion tokens are then picked out
into one list of U. Everything is a gather, backward too.

  M packed rows   W their columns   U completion tokens of the batch, in a list

M and U are rounded up to eighths of what the padded batch has, so that a run
meets few shapes. Source: sequence packing, Krell et al. 2021, arXiv:2107.02027.
"""
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlx.models import transformer


class Plan(NamedTuple):
  """Where everything lies: flat indices (int32), -1 for nothing.

  Of a batch in n microbatches, each leaf is n such plans along axis 0, alike in
  shape; indices count within the microbatch.
  """
  source_MW: Any  # slot -> column of [B, S]
  state_U: Any    # token of the list -> slot whose hidden state predicts it
  token_MW: Any   # its inverse
  target_U: Any   # token of the list -> column of [B, T]
  token_BT: Any   # its inverse


def plan(prompt_len_B, completion_len_B, prompt_width, completion_width, *,
         d_model, parts=1):
  """Lengths -> Plan. Numpy; rows stay in their microbatch.

  A row needs all its tokens but the last, which predicts nothing; without a
  completion it needs none. W is S or 2S, whichever is cheaper at

    M W (d_model + W)     matrices + attention, whose scores cost W per token

  Args:
    prompt_len_B, completion_len_B: numpy, tokens.
    prompt_width, completion_width: X and T, S = X + T.
    d_model: D.
    parts: microbatches.
  """
  rows = len(prompt_len_B) // parts
  s = prompt_width + completion_width
  length_B = np.where(completion_len_B > 0, prompt_len_B + completion_len_B - 1, 0)
  def layout(w):
    found = [first_fit(x, w) for x in length_B.reshape(parts, rows)]
    return _eighths(max(n for *_, n in found), rows), w, found
  m, w, found = min((layout(s), layout(2 * s)),
                    key=lambda x: x[0] * x[1] * (d_model + x[1]))
  start_B = np.concatenate([row * w + start for row, start, _ in found])
  part_B, row_B = np.divmod(np.arange(len(length_B)), rows)

  source = np.full((parts, m * w), -1, np.int32)
  b, j = _ragged(length_B)
  source[part_B[b], start_B[b] + j] = row_B[b] * s + prompt_width - prompt_len_B[b] + j

  b, t = _ragged(completion_len_B)
  part, slot, column = part_B[b], start_B[b] + prompt_len_B[b] - 1 + t, row_B[b] * completion_width + t
  counts = completion_len_B.reshape(parts, rows).sum(axis=1)
  u = np.arange(len(b)) - np.repeat(np.cumsum(counts) - counts, counts)
  n = _eighths(counts.max(), rows * completion_width)
  state, target = (np.full((parts, n), -1, np.int32) for _ in range(2))
  by_slot = np.full_like(source, -1)
  by_column = np.full((parts, rows * completion_width), -1, np.int32)
  state[part, u], by_slot[part, slot] = slot, u
  target[part, u], by_column[part, column] = column, u
  return Plan(source.reshape(-1, w), state.reshape(-1), by_slot.reshape(-1, w),
              target.reshape(-1), by_column.reshape(-1, completion_width))


def first_fit(length_B, width):
  """First-fit decreasing: (row_B, start_B, number of rows) of width `width`."""
  row_B, start_B = np.zeros_like(length_B), np.zeros_like(length_B)
  used = np.zeros(len(length_B) + 1, int)  # One row more: the search always ends.
  for b in np.argsort(-length_B, kind="stable"):
    row = np.argmax(used + length_B[b] <= width)
    row_B[b], start_B[b] = row, used[row]
    used[row] += length_B[b]
  return row_B, start_B, np.count_nonzero(used)


def hidden(params, config, tokens_BS, positions_BS, plan):
  """The hidden states that predict completion tokens, as a list: hidden_UD."""
  source_MW = plan.source_MW
  pick = lambda x_BS: x_BS.reshape(-1)[source_MW]  # Any token will do for nothing.
  hidden_MWD = transformer.hidden(
      params, config, pick(tokens_BS), pick(positions_BS), source_MW >= 0,
      source_MW // tokens_BS.shape[1])  # A row's segment is its number.
  return take(hidden_MWD.reshape(-1, hidden_MWD.shape[2]), plan.state_U,
              plan.token_MW.reshape(-1))


@jax.custom_vjp
def take(x, index, inverse):
  """x[index] along axis 0, and 0 where index is -1.

  Backward is the same with the inverse: XLA's scatter writes row by row on CPU.
  """
  del inverse
  mask = (index >= 0).reshape(-1, *[1] * (x.ndim - 1))
  return jnp.where(mask, x[index], 0)


take.defvjp(lambda x, index, inverse: (take(x, index, inverse), (index, inverse)),
            lambda saved, g: (take(g, *saved[::-1]), None, None))


def _eighths(n, full):
  step = max(full // 8, 1)
  return max(-(-n // step), 1) * step


def _ragged(length_B):
  """(b, j) of every element: b the row, j = 0 .. length_B[b] - 1."""
  b = np.repeat(np.arange(len(length_B)), length_B)
  return b, np.arange(len(b)) - np.repeat(np.cumsum(length_B) - length_B, length_B)
