"""Plans which rows are decoded together, once per chunk, on the host, from their lengths.

Row p * G + g is sample g of prompt p. A plan puts rows into slots in groups of
equal size that share a prompt's keys and values. On a mesh each device has a plan for
its own prompts and rows, numbered from 0; plans of all devices have equal shapes.
"""
import dataclasses

import numpy as np

_SHARE = 0.3  # Share of the free memory that keys and values may take.


@dataclasses.dataclass(frozen=True)
class Plan:
  """The W slots of the next chunk, of one device."""
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
    if self.waiting < self.rows: return np.int32(len(self.row_W) * 3 // 4)
    less = -(-len(self.row_W) // 2)
    return np.int32(less if find_smallest(less, self.slots) < len(self.row_W) else 0)


def count_fitting(rows: int, group: int, bytes_per_row: int, bytes_free: int | None) -> int | None:
  """The largest number of rows that are decoded at once; None if all of them fit.

    bytes_per_row slots <= 0.3 bytes_free

  The result is the largest number of whole groups for which this holds, and at least one. The
  rest of the memory is for a copy of the cache when rows move, prompts, weights and activations.

  Args:
    rows: rows of a draw, a multiple of `group`.
    bytes_per_row: size of the keys and values of a row of the largest length.
    bytes_free: free memory of the device; None: unknown.
  Example: keys and values may take 300 of 1000 bytes.
    >>> slots.count_fitting(64, 4, bytes_per_row=10, bytes_free=1000)
    28
  """
  if bytes_free is None or rows * bytes_per_row <= _SHARE * bytes_free: return None
  return max(int(_SHARE * bytes_free // (group * bytes_per_row)), 1) * group


def start(prompts: int, group: int, slots: int | None = None) -> Plan:
  """The first plan: all rows, or the groups that fit into `slots`."""
  rows = prompts * group
  w = min(slots or rows, rows)
  return Plan(row_W=np.arange(w, dtype=np.int32), source_W=np.full(w, -1, np.int32),
              count_W=np.zeros(w, np.int32),
              prompt_P=None if w == rows else np.arange(w // group, dtype=np.int32),
              is_same=False, waiting=w, rows=rows, group=group, slots=w)


def plan_next(plans: list[Plan], running_W: np.ndarray, steps_O: np.ndarray) -> list[Plan] | None:
  """The plans after `plans`, one for each device; None when every row has ended.

  Waiting rows take the slots of rows that ended. When half of the slots suffice on every device,
  the number of slots is halved. Groups are as large as possible, so that there are as few copies
  of a prompt's keys and values as possible.

  Args:
    running_W: bool, rows that have not ended after the chunk of `plans`; of all devices.
    steps_O: tokens that each running row has drawn in it.
  """
  live = [np.flatnonzero(running_W & plan.live_W)
          for plan, running_W in zip(plans, np.split(running_W, len(plans)))]
  new = [range(plan.waiting, min(plan.waiting + plan.slots - len(i), plan.rows))
         for plan, i in zip(plans, live)]
  needed = max(len(i) + len(rows) for i, rows in zip(live, new))
  if not needed: return None
  w, slots = len(plans[0].row_W), plans[0].slots
  size = find_smallest(needed, slots)
  if size == w and not any(new): return [_keep_slots(*x) for x in zip(plans, live, steps_O)]
  rows = [[*sorted(plan.row_W[i].tolist()), *more] for plan, i, more in zip(plans, live, new)]
  grouped = _group_rows(rows, plans[0].group, size)
  return [_move_rows(*x) for x in zip(plans, live, new, steps_O, grouped)]


def _keep_slots(plan, live, steps):
  """Every row stays in its slot."""
  w = len(plan.row_W)
  return dataclasses.replace(
      plan, row_W=np.where(np.isin(np.arange(w), live), plan.row_W, np.int32(plan.rows)),
      source_W=np.arange(w, dtype=np.int32), count_W=plan.count_W + np.int32(steps),
      prompt_P=None, is_same=True)


def _move_rows(plan, live, new, steps, groups):
  """Rows go to the slots of `groups`, lists of the rows of a prompt."""
  source = {int(plan.row_W[i]): int(i) for i in live}
  g, groups = groups
  row_W = np.full(g * len(groups), plan.rows, np.int32)
  prompt_P = np.zeros(len(groups), np.int32)
  for i, members in enumerate(groups):
    row_W[i * g:i * g + len(members)] = members
    prompt_P[i] = members[0] // plan.group if members else 0
  source_W = np.array([source.get(r, -1) for r in row_W.tolist()], np.int32)
  count_W = plan.count_W + np.int32(steps)
  return dataclasses.replace(plan, row_W=row_W, source_W=source_W,
                             count_W=np.where(source_W < 0, 0, count_W[source_W]),
                             prompt_P=prompt_P, is_same=False, waiting=plan.waiting + len(new))


def find_smallest(n: int, slots: int) -> int:
  """The smallest of slots, slots / 2, slots / 4, ... (rounded up) that is at least n.

  Example:
    >>> slots.find_smallest(10, 64)
    16
  """
  return min(size for size in sizes(slots) if size >= n)


def sizes(slots: int) -> list[int]:
  """slots, slots / 2, slots / 4, ... (rounded up), down to 4 or less."""
  out = [slots]
  while out[-1] > 4: out.append(-(-out[-1] // 2))
  return out


def _group_rows(rows, group, size):
  """For each device (g, size / g lists of at most g rows of one prompt), for the largest g.

  Args:
    rows: the rows of each device, in order.
  """
  def lists_of(rows, g):
    lists, last = [], None
    for r in rows:
      if last != r // group or len(lists[-1]) == g: lists.append([])
      lists[-1].append(r)
      last = r // group
    return lists
  for g in (d for d in range(group, 0, -1) if group % d == 0 and size % d == 0):
    lists = [lists_of(x, g) for x in rows]
    if max(map(len, lists)) * g <= size:
      return [(g, x + [[] for _ in range(size // g - len(x))]) for x in lists]
  raise ValueError(f"{max(map(len, rows))} rows do not fit into {size} slots.")
