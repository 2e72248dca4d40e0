"""Plans which rows are decoded together, once per chunk, on the host, from their lengths.

Row p * G + g is sample g of prompt p. A plan puts rows into slots in groups of
equal size that share a prompt's keys and values.
"""
import dataclasses

import numpy as np

_SHARE = 0.3  # Share of the free memory that keys and values may take.


@dataclasses.dataclass(frozen=True)
class Plan:
  """The W slots of the next chunk."""
  row_W: np.ndarray      # int32, the row that is decoded in the slot; `rows`: no row
  source_W: np.ndarray   # int32, its slot in the previous chunk; -1: it starts now
  count_W: np.ndarray    # int32, number of its tokens that are drawn so far
  prompt_P: np.ndarray | None  # int32, the prompt of each group of slots; None: as before
  is_same: bool          # Every row stays in its slot.
  waiting: int           # Rows from this one on have not started.
  rows: int
  group: int             # G
  slots: int             # the most rows at once

  @property
  def live_W(self):
    return self.row_W < self.rows

  @property
  def columns(self):
    """Number of suffix columns that are still needed."""
    return int(np.max(self.count_W, where=self.live_W, initial=0))

  @property
  def enough(self):
    """int32: repack when at most this many rows are still running."""
    if self.waiting < self.rows: return np.int32(len(self.row_W) // 2)
    less = -(-len(self.row_W) // 2)
    return np.int32(less if smallest(less, self.slots) < len(self.row_W) else 0)


def that_fit(rows: int, group: int, bytes_per_row: int, bytes_free: int | None) -> int | None:
  """The largest number of rows that are decoded at once; None if all of them fit.

    bytes_per_row slots <= 0.3 bytes_free

  The result is the largest number of whole groups for which this holds, and at least one. The
  rest of the memory is for a copy of the cache when rows move, prompts, weights and activations.

  Args:
    rows: rows of a draw, a multiple of `group`.
    bytes_per_row: size of the keys and values of a row of the largest length.
    bytes_free: free memory of the device; None: unknown.
  Example: keys and values may take 300 of 1000 bytes.
    >>> slots.that_fit(64, 4, bytes_per_row=10, bytes_free=1000)
    28
  """
  if bytes_free is None or rows * bytes_per_row <= _SHARE * bytes_free: return None
  return max(int(_SHARE * bytes_free // (group * bytes_per_row)), 1) * group


def start(prompts: int, group: int, slots: int | None = None) -> Plan:
  """The first plan: all rows, or the groups that fit into `slots`."""
  rows = prompts * group
  w = min(slots or rows, rows)
  everything = w == rows
  return Plan(row_W=np.arange(w, dtype=np.int32), source_W=np.full(w, -1, np.int32),
              count_W=np.zeros(w, np.int32),
              prompt_P=None if everything else np.arange(w // group, dtype=np.int32),
              is_same=False, waiting=w, rows=rows, group=group, slots=w)


def following(plan: Plan, running_W: np.ndarray, steps: int,
              moves: bool = True) -> Plan | None:
  """The plan after `plan`; None when every row has ended.

  Waiting rows take the slots of rows that ended. When half of the slots suffice, the number
  of slots is halved. Groups are as large as possible, so that there are as few copies of a
  prompt's keys and values as possible.

  Args:
    running_W: bool, rows that have not ended after `plan`'s chunk.
    steps: tokens that each of them has drawn in it.
    moves: False leaves every row in its slot.
  """
  live_W = running_W & plan.live_W
  live = np.flatnonzero(live_W)
  w = len(plan.row_W)
  new = range(plan.waiting, min(plan.waiting + plan.slots - len(live), plan.rows))
  if not len(live) + len(new): return None
  count_W = plan.count_W + np.int32(steps)
  size = smallest(len(live) + len(new), plan.slots)
  if not moves or (size == w and not new):
    return dataclasses.replace(
        plan, row_W=np.where(live_W, plan.row_W, np.int32(plan.rows)),
        source_W=np.arange(w, dtype=np.int32), count_W=count_W, prompt_P=None,
        is_same=True)
  source = {int(plan.row_W[i]): int(i) for i in live}
  rows = sorted(source) + list(new)
  group_rows = _grouped(rows, plan.group, size)
  g = size // len(group_rows)
  row_W = np.full(size, plan.rows, np.int32)
  prompt_P = np.zeros(len(group_rows), np.int32)
  for i, members in enumerate(group_rows):
    row_W[i * g:i * g + len(members)] = members
    prompt_P[i] = members[0] // plan.group if members else 0
  source_W = np.array([source.get(r, -1) for r in row_W.tolist()], np.int32)
  return dataclasses.replace(
      plan, row_W=row_W, source_W=source_W,
      count_W=np.where(source_W < 0, 0, count_W[source_W]), prompt_P=prompt_P,
      is_same=False, waiting=plan.waiting + len(new))


def smallest(n: int, slots: int) -> int:
  """The smallest of slots, slots / 2, slots / 4, ... (rounded up) that is at least n.

  Example:
    >>> slots.smallest(10, 64)
    16
  """
  while slots > 4 and -(-slots // 2) >= n:
    slots = -(-slots // 2)
  return slots


def _grouped(rows, group, size):
  """Lists of at most g rows of one prompt, size / g of them, for the largest g that fits."""
  for g in (d for d in range(group, 0, -1) if group % d == 0 and size % d == 0):
    lists, last = [], None
    for r in rows:
      if last != r // group or len(lists[-1]) == g:
        lists.append([])
      lists[-1].append(r)
      last = r // group
    if len(lists) * g <= size:
      return lists + [[] for _ in range(size // g - len(lists))]
  raise ValueError(f"{len(rows)} rows do not fit into {size} slots.")
