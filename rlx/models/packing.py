"""Packs rows of different lengths into fewer rows, so that little is computed on padding.

A plan is made on the host from lengths alone. It places the rows of a batch one after another in
Y packed rows of C columns; attention stays inside each row's own segment. Neighbours with the
same prompt share one copy of it:

  | prompt but its last token | last, completion 1 | last, completion 2 | ...
    the trunk, branch 0         branch              branch

Each branch attends to the trunk and to itself. Where completions are long, trunks are stored
apart, in P rows of X columns, and each packed row has branches of one trunk: a token then attends
to X + C keys instead of those of a row wide enough for a group.

The hidden states that predict completion tokens are then gathered into one list of U; backward is
a gather too. The last prompt token is in every branch, so that each completion token has its own
predictor.

  Y packed rows   C columns of a packed row   U completion tokens of the batch, in one list

C, Y and U are one of eight sizes, which follow from the size of the padded batch alone: whatever
lengths do, a run compiles each program at most eight times. Source: sequence packing, Krell et al.
2021, arXiv:2107.02027.
"""
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rlx.models import transformer


# The sizes of a plan: (whether trunks are apart, C as a part of T with trunks apart and of S
# otherwise, Y C as a share of the padded batch). Most steps of a run are near the middle: there
# sizes are close to each other, and one is for rows that are all short.
_SIZES = ((True, 1, 1), (True, 1, 0.79), (True, 1, 0.56), (False, 1, 0.44), (False, 1, 0.35),
          (False, 1, 0.25), (False, 1, 0.18), (False, 2, 0.0625))
# (C as a share of S, U as a share of B T) where each row has a packed row of its own.
_ALONE = ((1, 1), (1, 0.5), (0.9, 0.45), (0.8, 0.4), (0.7, 0.4), (0.5, 0.25), (0.3, 0.125),
          (0.2, 0.08))


class Plan(NamedTuple):
  """Flat indices (int32) of every token's place; -1 where there is none.

  For a batch of n microbatches on O devices, each leaf is O n plans of equal shapes, concatenated
  along axis 0, first by device; indices count within the device's part of the microbatch.
  """
  source_YC: Any  # slot -> column of [B, S]
  trunk_YC: Any   # slot -> row of the batch whose prompt it attends to
  state_U: Any    # token of the list -> slot whose hidden state predicts it
  token_YC: Any   # the inverse of state_U
  target_U: Any   # token of the list -> column of [B, T]
  token_BT: Any   # the inverse of target_U
  apart_PX: Any = None  # slot of a trunk that is stored apart -> column of [B, S]
  apart_Y: Any = None   # packed row -> its trunk among these; any if the row is empty


class _Size(NamedTuple):
  """Numbers of slots of a microbatch: P trunks apart of X columns, Y packed rows of C, U tokens."""
  p: int
  y: int
  c: int
  u: int

  def cost(self, d_model, x):
    """What decides between sizes, see `plan`."""
    return (self.p * x * (4 * d_model + x)
            + self.y * self.c * (4 * d_model + self.c + x * bool(self.p)))


class _Layout(NamedTuple):
  """Where the trunk and the branch of each row begin, among P X + Y C slots of a microbatch."""
  p: int  # trunks that are stored apart: all of them, or 0
  y: int
  c: int
  trunk_B: Any
  trunk_at_B: Any
  branch_at_B: Any


def plan(prompt_len_B, completion_len_B, prompt_width, completion_width, config, *,
         parts=1, trunk_B=None):
  """The cheapest Plan for rows of these lengths, on the host.

  Rows stay in their microbatch. A row needs all its tokens but the last, which predicts nothing;
  without a completion it needs none. The cost of a size is

    Y C (4 D + C)                        matrices + attention: scores, keys per token
    P X (4 D + X) + Y C (4 D + X + C)    with trunks apart

  No size takes more memory than the padded batch.

  Args:
    prompt_len_B, completion_len_B: numpy, tokens.
    prompt_width, completion_width: X and T, S = X + T.
    config: DecoderConfig of the model that runs over the plan.
    parts: number of microbatches times the number of devices over which rows are sharded.
    trunk_B: from `find_trunks`. None: each row has its own prompt, as it also does if the
      model's attention does not support branches. Rows of cudnn are not packed with others, but
      have no padding before their tokens and less after them.
  """
  n, rows = len(prompt_len_B), len(prompt_len_B) // parts
  s = prompt_width + completion_width
  row_B = np.arange(n)
  first_B = row_B // rows * rows  # of its microbatch
  if trunk_B is None or config.attention != "blocks": trunk_B = row_B
  lengths = prompt_len_B, completion_len_B
  counts = completion_len_B.reshape(parts, rows).sum(axis=1)
  size, (p, y, c, trunk_B, trunk_at_B, branch_at_B) = _choose(
      lengths, trunk_B, rows, prompt_width, completion_width, counts.max(), config)
  before = p * prompt_width

  source, trunk = np.full((2, parts, before + y * c), -1, np.int32)
  def fill(b, slot, column):
    where = b // rows, slot
    source[where] = (b - first_B[b]) * s + column
    trunk[where] = trunk_B[b] - first_B[b]
  start_B = prompt_width - prompt_len_B
  b, j = _list_elements(np.where((trunk_B == row_B) & (completion_len_B > 0), prompt_len_B - 1, 0))
  fill(b, trunk_at_B[b] + j, start_B[b] + j)
  b, t = _list_elements(completion_len_B)
  slot, part = branch_at_B[b] + t, b // rows
  fill(b, slot, prompt_width - 1 + t)
  apart = {}
  if p:
    apart_Y = np.zeros((parts, y), np.int32)
    apart_Y[part, (slot - before) // c] = trunk_at_B[b] // prompt_width
    apart = dict(apart_PX=source[:, :before].reshape(-1, prompt_width), apart_Y=apart_Y.ravel())
  source, trunk, slot = source[:, before:], trunk[:, before:], slot - before

  u = np.arange(len(b)) - np.repeat(np.cumsum(counts) - counts, counts)
  column = (b - first_B[b]) * completion_width + t
  state, target = np.full((2, parts, size.u), -1, np.int32)
  by_slot = np.full_like(source, -1)
  by_column = np.full((parts, rows * completion_width), -1, np.int32)
  state[part, u], by_slot[part, slot] = slot, u
  target[part, u], by_column[part, column] = column, u
  return Plan(source.reshape(-1, c), trunk.reshape(-1, c), state.reshape(-1),
              by_slot.reshape(-1, c), target.reshape(-1),
              by_column.reshape(-1, completion_width), **apart)


def list_sizes(rows, prompt_width, completion_width, groups=None, is_alone=False):
  """The sizes that plans of microbatches of `rows` rows have, at most eight; the first is for all.

  Args:
    groups: P, number of trunks that are stored apart; None: each row has its own prompt.
    is_alone: whether each row has a packed row of its own.
  """
  s, full = prompt_width + completion_width, rows * completion_width
  if is_alone:
    return [_Size(0, rows, min(math.ceil(s * width / 8) * 8, s), math.ceil(full * share))
            for width, share in _ALONE]
  sizes = []
  for is_apart, divisor, share in _SIZES:
    is_apart = is_apart and groups is not None
    most = completion_width if is_apart else s
    c = -(-most // divisor)
    y = math.ceil(share * rows * (most / c) - 1e-9)
    sizes.append(_Size(groups if is_apart else 0, y, c, min(y * c, full)))
  return sizes


def _choose(lengths, trunk_B, rows, x, t, listed, config):
  """(_Size, _Layout): the cheapest size into which the rows fit.

  Args:
    listed: completion tokens of the microbatch that has most.
  """
  prompt_len_B, completion_len_B = lengths
  row_B = np.arange(len(trunk_B))
  is_alone, groups = config.attention == "cudnn", None
  if (trunk_B != row_B).any():
    # A divisor of the rows, because a prompt that was drawn twice in a row has one trunk.
    starts_B = (np.diff(trunk_B, prepend=-1) != 0) | (row_B % rows == 0)
    most = starts_B.reshape(-1, rows).sum(axis=1).max()
    groups = next(n for n in range(most, rows + 1) if rows % n == 0)
  longest = np.where(completion_len_B > 0, prompt_len_B - 1 + completion_len_B, 0).max()
  layouts = {}
  def lay_out(size):
    if is_alone: return _lay_out_alone(prompt_len_B, rows, size.c)
    if size.p: return _lay_out_apart(completion_len_B, trunk_B, rows, x, size)
    return _lay_out_together(*lengths, trunk_B, rows, size.c)
  sizes = list_sizes(rows, x, t, groups, is_alone)
  for size in sorted(sizes, key=lambda size: (size.cost(config.d_model, x), size.u)):
    if listed > size.u or (completion_len_B.max() if size.p else longest) > size.c: continue
    layout = layouts[size.p, size.c] = layouts.get((size.p, size.c)) or lay_out(size)
    if layout.y <= size.y: return size, layout._replace(y=size.y)
  raise AssertionError("All rows fit into the first size.")


def find_trunks(tokens_BX, prompt_len_B):
  """trunk_B: for each row, the first of its neighbours with the same prompt, on the host."""
  same = (tokens_BX[1:] == tokens_BX[:-1]).all(axis=1) & (prompt_len_B[1:] == prompt_len_B[:-1])
  starts = np.r_[True, ~same]
  return np.flatnonzero(starts)[np.cumsum(starts) - 1]


def _lay_out_alone(prompt_len_B, rows, c):
  """_Layout with one row in each packed row."""
  row_B = np.arange(len(prompt_len_B))
  at_B = row_B % rows * c
  return _Layout(0, rows, c, row_B, at_B, at_B + prompt_len_B - 1)


def _lay_out_together(prompt_len_B, completion_len_B, trunk_B, rows, c):
  """_Layout with trunks in the packed rows.

  Rows that do not fit in one packed row with their trunk, or are in another microbatch, get
  another copy of the trunk.
  """
  trunk_B = np.copy(trunk_B)
  trunk_at_B, branch_at_B = np.zeros((2, len(trunk_B)), int)
  y = 0
  for part in range(0, len(trunk_B), rows):
    units = []  # (rows, where the branch of each starts, tokens)
    for b in _groups(completion_len_B, trunk_B, part, rows):
      stem = prompt_len_B[b[0]] - 1
      unit_b, start_b, n = first_fit(completion_len_B[b], c - stem)
      for i in range(n):
        mine = unit_b == i
        units.append((b[mine], stem + start_b[mine], stem + completion_len_B[b[mine]].sum()))
    row, start, n = first_fit(np.array([n for *_, n in units], int), c)
    for (b, start_b, _), at in zip(units, row * c + start):
      trunk_B[b], trunk_at_B[b], branch_at_B[b] = b[0], at, at + start_b
    y = max(y, n)
  return _Layout(0, y, c, trunk_B, trunk_at_B, branch_at_B)


def _lay_out_apart(completion_len_B, trunk_B, rows, x, size):
  """_Layout with trunks in rows of their own, and packed rows that have one trunk each."""
  p, c = size.p, size.c
  trunk_B = np.copy(trunk_B)
  trunk_at_B, branch_at_B = np.zeros((2, len(trunk_B)), int)
  y = 0
  for part in range(0, len(trunk_B), rows):
    packed = 0
    for i, b in enumerate(_groups(completion_len_B, trunk_B, part, rows)):
      row_b, start_b, n = first_fit(completion_len_B[b], c)
      trunk_B[b], trunk_at_B[b] = b[0], i * x
      branch_at_B[b] = p * x + (packed + row_b) * c + start_b
      packed += n
    y = max(y, packed)
  return _Layout(p, y, c, trunk_B, trunk_at_B, branch_at_B)


def _groups(completion_len_B, trunk_B, part, rows):
  """The rows of a microbatch that have a completion, as a list of arrays by prompt."""
  used_B = part + np.flatnonzero(completion_len_B[part:part + rows])
  groups = np.split(used_B, 1 + np.flatnonzero(np.diff(trunk_B[used_B])))
  return groups if len(used_B) else []


def first_fit(length_B, width):
  """First-fit decreasing: (row_B, start_B, number of rows) for rows of `width` columns.

  Lengths that fit in one row keep their order.
  """
  row_B, start_B = np.zeros_like(length_B), np.cumsum(length_B) - length_B
  if length_B.sum() <= width: return row_B, start_B, min(length_B.sum(), 1)
  used = np.zeros(len(length_B) + 1, int)  # One more row, so that the search always succeeds.
  for b in np.argsort(-length_B, kind="stable"):
    row = np.argmax(used + length_B[b] <= width)
    row_B[b], start_B[b] = row, used[row]
    used[row] += length_B[b]
  return row_B, start_B, np.count_nonzero(used)


def hidden(params, config, tokens_BS, positions_BS, plan):
  """The hidden states that predict completion tokens, as a list for each device: hidden_OUD."""
  source_YC, s = plan.source_YC, tokens_BS.shape[1]
  shards = transformer.row_shards(config)
  # Empty slots get the batch's last token, which nothing attends to.
  by_shard = _map_shards(lambda x_BS, source_YC: x_BS.reshape(-1)[source_YC], shards)
  pick = lambda x_BS, source=source_YC: by_shard(x_BS, source)
  row_YC, column_YC = jnp.divmod(source_YC, s)
  in_trunk_YC = column_YC < s - plan.token_BT.shape[1] - 1
  branches_YC = jnp.where(in_trunk_YC, 0, 1 + row_YC)
  trunks = None if plan.apart_PX is None else transformer.Trunks(
      pick(tokens_BS, plan.apart_PX), pick(positions_BS, plan.apart_PX), plan.apart_PX >= 0,
      plan.apart_Y.reshape(shards, -1))
  hidden_YCD = transformer.hidden(
      params, config, pick(tokens_BS), pick(positions_BS), source_YC >= 0,
      plan.trunk_YC, branches_YC if config.attention == "blocks" else None, trunks)
  return take(hidden_YCD.reshape(-1, hidden_YCD.shape[2]), plan.state_U,
              plan.token_YC.reshape(-1), shards).reshape(shards, -1, hidden_YCD.shape[2])


def take(x: Any, index: Any, inverse: Any, shards: int = 1) -> Any:
  """x[index] along axis 0, and 0 where index is -1; indices count within the device's part.

  Args:
    inverse: the index that leads back.
    shards: number of devices over which axis 0 of all arrays is sharded.
  """
  return _map_shards(_take, shards)(x, index, inverse)


def _map_shards(fn, shards):
  """fn of each device's part of its arguments, so that nothing is sent to another device."""
  if shards == 1: return fn
  def by_shard(*args):
    out = jax.vmap(fn)(*[x.reshape(shards, -1, *x.shape[1:]) for x in args])
    return out.reshape(-1, *out.shape[2:])
  return by_shard


@jax.custom_vjp
def _take(x, index, inverse):
  """Backward is a gather with the inverse, because XLA's scatter writes row by row on CPU."""
  del inverse
  mask = (index >= 0).reshape(-1, *[1] * (x.ndim - 1))
  return jnp.where(mask, x[index], 0)


_take.defvjp(lambda x, index, inverse: (_take(x, index, inverse), (index, inverse)),
             lambda saved, g: (_take(g, *saved[::-1]), None, None))


def _list_elements(length_B):
  """(b, j) of every element: b the row, j = 0 .. length_B[b] - 1."""
  b = np.repeat(np.arange(len(length_B)), length_B)
  return b, np.arange(len(b)) - np.repeat(np.cumsum(length_B) - length_B, length_B)
