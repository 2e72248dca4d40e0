"""Endless, resumable iteration over prompts."""
import zlib
from collections.abc import Iterable

import numpy as np

from rlx.core import records


class PromptIterator:
  """Shuffles the prompts anew every epoch; its state is a few numbers.

  Over any number of epochs all prompts are taken equally often, up to a difference of one. A
  prompt that comes up a second time within one call of `take`, as can happen across the end of an
  epoch, waits for the next call: completions are keyed by prompt id, so the same prompt twice
  would be sampled twice alike.
  """

  def __init__(self, prompts, *, seed, paired=False):
    """Starts with the first epoch.

    Args:
      prompts: non-empty list with unique ids.
      seed: of the shuffles.
      paired: prompts are questions in two wordings, and a prompt's `meta["pair"]` is the id of
        the other wording. Both are taken together, one after the other.
    Raises:
      ValueError: ids are not unique, or a prompt has no pair.
    """
    self._by_id = {p.id: p for p in prompts}
    if len(self._by_id) < len(prompts) or not prompts:
      raise ValueError(f"prompts: {len(prompts)} prompts have {len(self._by_id)} "
                       "different ids; ids must be unique and at least one.")
    self._units = _pairs(self._by_id) if paired else [(p,) for p in prompts]
    self._index = {p.id: i for i, unit in enumerate(self._units) for p in unit}
    self._size = len(self._units[0])
    self._seed, self._epoch, self._position = seed, 0, 0
    self._waiting = []  # indices of units that come first in the next `take`
    self._order = self._shuffle()

  def take(self, n: int, skip: Iterable[str] = ()) -> list[records.Prompt]:
    """The next `n` prompts, all different and none with an id in `skip`."""
    busy = self._find_busy(n, skip)
    waiting, self._waiting = self._waiting, []
    taken: list[int] = []
    while waiting or len(taken) < n // self._size:
      i = waiting.pop(0) if waiting else self._next()
      if i not in busy and len(taken) < n // self._size:
        taken.append(i)
        busy.add(i)
      elif i not in self._waiting:
        self._waiting.append(i)
    return [p for i in taken for p in self._units[i]]

  def count_free(self, skip: Iterable[str]) -> int:
    """How many prompts have no id in `skip`; of pairs, how many pairs."""
    return len(self._units) - len(self._find_busy(0, skip))

  def all(self) -> list[records.Prompt]:
    """Every prompt once."""
    return [p for unit in self._units for p in unit]

  def first(self, n: int) -> list[records.Prompt]:
    """The first `n` prompts of the first epoch, independent of what has been taken."""
    return PromptIterator(self.all(), seed=self._seed, paired=self._size == 2).take(n)

  def by_id(self, ids: Iterable[str]) -> list[records.Prompt]:
    """The prompts with these ids, in this order."""
    if unknown := [i for i in ids if i not in self._by_id]:
      raise ValueError(f"prompts: no prompt has the id {unknown[0]!r}; "
                       "the data differs from the checkpoint's.")
    return [self._by_id[i] for i in ids]

  def state(self) -> dict:
    """What `restore` needs, as plain ints and lists."""
    return dict(seed=self._seed, epoch=self._epoch, position=self._position,
                waiting=list(self._waiting), **self._data())

  def restore(self, state: dict) -> None:
    """Continues where `state` was taken, over the same prompts.

    Raises:
      ValueError: the prompts or the seed are not those of the state.
    """
    self._check_data(state)
    self._epoch, self._position = state["epoch"], state["position"]
    self._waiting = list(state["waiting"])
    self._order = self._shuffle()

  def _find_busy(self, n, skip):
    """Indices of the units of `skip`, after a check that `n` prompts are left."""
    busy = {self._index[i] for i in skip if i in self._index}
    if n % self._size:
      raise ValueError(f"prompts: {n} prompts are no multiple of {self._size} wordings.")
    if n > self._size * (len(self._units) - len(busy)):
      raise ValueError(f"prompts: {n} different ones asked for, there are "
                       f"{len(self._by_id)} and {self._size * len(busy)} are in use.")
    return busy

  def _check_data(self, state):
    for key, now in (dict(seed=self._seed, weights=None) | self._data()).items():
      if state.get(key) != now:
        raise ValueError(f"prompts: {key} is {now} but was {state.get(key)} in the "
                         "checkpoint; resume with the same data and seed.")

  def _data(self):
    """Numbers that change with the ids or their order."""
    ids = "\n".join(unit[0].id for unit in self._units)
    return dict(count=len(self._units), ids=zlib.crc32(ids.encode()))

  def _next(self):
    if self._position == len(self._order):
      self._epoch, self._position = self._epoch + 1, 0
      self._order = self._shuffle()
    self._position += 1
    return int(self._order[self._position - 1])

  def _shuffle(self):
    seeds = [self._seed, zlib.crc32(b"prompts"), self._epoch]
    return np.random.default_rng(seeds).permutation(len(self._units))


def _pairs(by_id):
  """[(prompt, its other wording)], in the order of the first of the two."""
  pairs = {}
  for p in by_id.values():
    other = by_id.get(p.meta.get("pair"))
    if other is None or other.meta["pair"] != p.id:
      raise ValueError(f"prompts.paired=True: {p.id!r} has no other wording among the "
                       "prompts; prompts.dataset has to name it in meta['pair'].")
    if other.id not in pairs: pairs[p.id] = p, other
  return list(pairs.values())
