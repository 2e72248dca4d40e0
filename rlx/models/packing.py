"""Ragged rows in fewer token rows, so that padding costs next to nothing.

A plan is made on the host, from lengths alone. It lays the rows of a batch one
behind another into M rows of W columns; attention stays inside a row's own
segment. Neighbours with the same prompt share one copy of it:

  | prompt but its last token | last, completion 1 | last, completion 2 | ...
    the trunk, branch 0         branch              branch

and each branch attends to the trunk and itself. Where completions are long, trunks
lie apart, in P rows of X, and each packed row has branches of one of them: a token
then meets X + W keys instead of those of a row that is wide enough for a group.

The hidden states that predict completion tokens are then picked out into one list of
U. That is a gather, backward too: the last prompt token is in every branch so that
each completion token has a predictor of its own.

  M packed rows   W their columns   U completion tokens of the batch, in a list

M W is rounded up to eighths of what the padded batch has and U to quarters, so
that a run meets few shapes. Source: sequence packing, Krell et al. 2021, arXiv:2107.02027.
"""
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlx.models import size
from rlx.models import transformer


# Widths of packed rows with their trunks, in S. More of them fit a little better, but
# every shape that a run meets is compiled.
_WIDTHS = 1, 1.5, 2.5, 4


class Plan(NamedTuple):
  """Where everything lies: flat indices (int32), -1 for nothing.

  Of a batch in n microbatches, each leaf is n such plans along axis 0, alike in
  shape; indices count within the microbatch.
  """
  source_MW: Any  # slot -> column of [B, S]
  trunk_MW: Any   # slot -> row of the batch whose prompt it attends to
  state_U: Any    # token of the list -> slot whose hidden state predicts it
  token_MW: Any   # its inverse
  target_U: Any   # token of the list -> column of [B, T]
  token_BT: Any   # its inverse
  apart_PX: Any = None  # slot of a trunk that lies apart -> column of [B, S]
  apart_M: Any = None   # packed row -> which of these it has; any, where it is empty


class _Layout(NamedTuple):
  """Where the two pieces of each row begin, among P X + M W slots of a microbatch."""
  p: int  # Trunks that lie apart: all, or 0.
  m: int
  w: int
  trunk_B: Any
  trunk_at_B: Any
  branch_at_B: Any

  def blocks(self, x):
    """(rows, columns, keys that a query meets) of what is computed."""
    return (self.p, x, x), (self.m, self.w, self.w + x * bool(self.p))


def plan(prompt_len_B, completion_len_B, prompt_width, completion_width, config, *,
         parts=1, trunk_B=None):
  """Lengths -> Plan. Numpy; rows stay in their microbatch.

  A row needs all its tokens but the last, which predicts nothing; without a
  completion it needs none. W is S times one of _WIDTHS, or T with trunks apart: what
  is cheapest at

    M W (4 D + W)                        matrices + attention: scores, keys per token
    P X (4 D + X) + M W (4 D + X + W)    with trunks apart

  of that which takes no more memory than the padded batch.

  Args:
    prompt_len_B, completion_len_B: numpy, tokens.
    prompt_width, completion_width: X and T, S = X + T.
    config: DecoderConfig of the model that runs over it.
    parts: microbatches.
    trunk_B: from `same_prompt`; None: each row has a prompt of its own, as
      always where the model's attention knows no branches.
  """
  n, rows = len(prompt_len_B), len(prompt_len_B) // parts
  s = prompt_width + completion_width
  row_B = np.arange(n)
  first_B = row_B // rows * rows  # of its microbatch
  if trunk_B is None or not _knows_branches(config): trunk_B = row_B
  layouts = [_together(prompt_len_B, completion_len_B, trunk_B, rows, s, int(s * k))
             for k in _WIDTHS]
  if (trunk_B != row_B).any():
    layouts.append(_apart(completion_len_B, trunk_B, rows, prompt_width, completion_width))
  total = lambda layout, of: sum(of(*block) for block in layout.blocks(prompt_width))
  bytes_of = functools.partial(size.layer_bytes, config)
  p, m, w, trunk_B, trunk_at_B, branch_at_B = min(
      (x for x in layouts if total(x, bytes_of) <= bytes_of(rows, s, s)),
      key=lambda x: total(x, lambda m, w, keys: m * w * (4 * config.d_model + keys)))
  before = p * prompt_width

  source, trunk = np.full((2, parts, before + m * w), -1, np.int32)
  def fill(b, slot, column):
    where = b // rows, slot
    source[where] = (b - first_B[b]) * s + column
    trunk[where] = trunk_B[b] - first_B[b]
  start_B = prompt_width - prompt_len_B
  b, j = _ragged(np.where((trunk_B == row_B) & (completion_len_B > 0), prompt_len_B - 1, 0))
  fill(b, trunk_at_B[b] + j, start_B[b] + j)
  b, t = _ragged(completion_len_B)
  slot, part = branch_at_B[b] + t, b // rows
  fill(b, slot, prompt_width - 1 + t)
  found = {}
  if p:
    apart_M = np.zeros((parts, m), np.int32)
    apart_M[part, (slot - before) // w] = trunk_at_B[b] // prompt_width
    found = dict(apart_PX=source[:, :before].reshape(-1, prompt_width), apart_M=apart_M.ravel())
  source, trunk, slot = source[:, before:], trunk[:, before:], slot - before

  counts = completion_len_B.reshape(parts, rows).sum(axis=1)
  u = np.arange(len(b)) - np.repeat(np.cumsum(counts) - counts, counts)
  column = (b - first_B[b]) * completion_width + t
  listed = _rounded(counts.max(), rows * completion_width, 4)
  state, target = np.full((2, parts, listed), -1, np.int32)
  by_slot = np.full_like(source, -1)
  by_column = np.full((parts, rows * completion_width), -1, np.int32)
  state[part, u], by_slot[part, slot] = slot, u
  target[part, u], by_column[part, column] = column, u
  return Plan(source.reshape(-1, w), trunk.reshape(-1, w), state.reshape(-1),
              by_slot.reshape(-1, w), target.reshape(-1),
              by_column.reshape(-1, completion_width), **found)


def _knows_branches(config):
  return config.attention != "splash"


def same_prompt(tokens_BX, prompt_len_B):
  """trunk_B: the first of the neighbouring rows with the same prompt. Numpy."""
  same = (tokens_BX[1:] == tokens_BX[:-1]).all(axis=1) & (prompt_len_B[1:] == prompt_len_B[:-1])
  starts = np.r_[True, ~same]
  return np.flatnonzero(starts)[np.cumsum(starts) - 1]


def _together(prompt_len_B, completion_len_B, trunk_B, rows, s, w):
  """_Layout with trunks in the packed rows.

  What does not fit one packed row with its trunk, or lies in another microbatch,
  gets a trunk of its own.
  """
  trunk_B, trunk_at_B, branch_at_B = np.copy(trunk_B), *np.zeros((2, len(trunk_B)), int)
  m = 0
  for part in range(0, len(trunk_B), rows):
    units = []  # (its rows, where each of their branches starts, tokens)
    for b in _groups(completion_len_B, trunk_B, part, rows):
      stem = prompt_len_B[b[0]] - 1
      unit_b, start_b, n = first_fit(completion_len_B[b], w - stem)
      for i in range(n):
        mine = unit_b == i
        units.append((b[mine], stem + start_b[mine],
                      stem + completion_len_B[b[mine]].sum()))
    row, start, n = first_fit(np.array([n for *_, n in units], int), w)
    for (b, start_b, _), at in zip(units, row * w + start):
      trunk_B[b], trunk_at_B[b], branch_at_B[b] = b[0], at, at + start_b
    m = max(m, n)
  return _Layout(0, _rounded(m, rows * s // w, 8), w, trunk_B, trunk_at_B, branch_at_B)


def _apart(completion_len_B, trunk_B, rows, x, w):
  """_Layout with trunks in rows of their own, and packed rows that have one each."""
  trunk_B, trunk_at_B, branch_at_B = np.copy(trunk_B), *np.zeros((2, len(trunk_B)), int)
  p = m = 0
  for part in range(0, len(trunk_B), rows):
    packed = 0
    for i, b in enumerate(_groups(completion_len_B, trunk_B, part, rows)):
      row_b, start_b, n = first_fit(completion_len_B[b], w)
      trunk_B[b], trunk_at_B[b] = b[0], i * x
      branch_at_B[b] = (packed + row_b) * w + start_b
      packed, p = packed + n, max(p, i + 1)
    m = max(m, packed)
  p, m = _rounded(p, rows, 32), _rounded(m, rows, 8)
  return _Layout(p, m, w, trunk_B, trunk_at_B, p * x + branch_at_B)


def _groups(completion_len_B, trunk_B, part, rows):
  """Of a microbatch, the rows with a completion, by prompt."""
  used_B = part + np.flatnonzero(completion_len_B[part:part + rows])
  found = np.split(used_B, 1 + np.flatnonzero(np.diff(trunk_B[used_B])))
  return found if len(used_B) else []


def first_fit(length_B, width):
  """First-fit decreasing: (row_B, start_B, number of rows) of width `width`.

  What fits one row stays in order.
  """
  row_B, start_B = np.zeros_like(length_B), np.cumsum(length_B) - length_B
  if length_B.sum() <= width: return row_B, start_B, min(length_B.sum(), 1)
  used = np.zeros(len(length_B) + 1, int)  # One row more: the search always ends.
  for b in np.argsort(-length_B, kind="stable"):
    row = np.argmax(used + length_B[b] <= width)
    row_B[b], start_B[b] = row, used[row]
    used[row] += length_B[b]
  return row_B, start_B, np.count_nonzero(used)


def hidden(params, config, tokens_BS, positions_BS, plan):
  """The hidden states that predict completion tokens, as a list: hidden_UD."""
  source_MW, s = plan.source_MW, tokens_BS.shape[1]
  # Any token will do for nothing.
  pick = lambda x_BS, source=source_MW: x_BS.reshape(-1)[source]
  row_MW, column_MW = jnp.divmod(source_MW, s)
  in_trunk_MW = column_MW < s - plan.token_BT.shape[1] - 1
  branches_MW = jnp.where(in_trunk_MW, 0, 1 + row_MW)
  trunks = None if plan.apart_PX is None else transformer.Trunks(
      pick(tokens_BS, plan.apart_PX), pick(positions_BS, plan.apart_PX), plan.apart_PX >= 0,
      plan.apart_M)
  hidden_MWD = transformer.hidden(
      params, config, pick(tokens_BS), pick(positions_BS), source_MW >= 0,
      plan.trunk_MW, branches_MW if _knows_branches(config) else None, trunks)
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


def _rounded(n, full, parts):
  """n, at least 1, up to a multiple of a part of `full`, but to no more than that."""
  step = max(full // parts, 1)
  up = max(-(-n // step), 1) * step
  return full if n <= full < up else up


def _ragged(length_B):
  """(b, j) of every element: b the row, j = 0 .. length_B[b] - 1."""
  b = np.repeat(np.arange(len(length_B)), length_B)
  return b, np.arange(len(b)) - np.repeat(np.cumsum(length_B) - length_B, length_B)
