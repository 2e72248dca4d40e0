"""Prompts of several sources in proportion to weights."""
import itertools
from collections.abc import Iterable, Mapping
import zlib

from rlx.core import records
from rlx.prompts import iterator


def choose_sources(weights: Mapping[str, float], taken: Mapping[str, int], n: int,
                   free: Mapping[str, int]) -> list[str]:
  """The sources of the next `n` prompts, so that counts follow the weights.

  With shares w_s = weight / sum of the weights, counts c_s and S sources, prompt k = 1, 2, ... is
  of that source with w_s k - c_s >= d, d = 1 / (2 S - 2), whose (c_s + 1 - d) / w_s is smallest.
  For each k and source

    |c_s - w_s k| <= 1 - d

  which for no number of sources can be lower for all weights. A source that has no prompt left is
  passed over; what it lacks then comes first as soon as it has one.

    >>> "".join(mixture.choose_sources(dict(a=3, b=1), dict(a=0, b=0), 8, dict(a=9, b=9)))
    'aabaaaba'

  Source: Tijdeman 1980, "The chairman assignment problem". Differs: a tie goes to the first source.

  Args:
    weights: positive, of any sum.
    taken: prompts of each source so far.
    free: prompts that each source still has.
  Returns:
    n names.
  Raises:
    ValueError: together they have fewer than n.
  """
  counts, left, order = dict(taken), dict(free), []
  share = {name: weight / sum(weights.values()) for name, weight in weights.items()}
  d = 1 / max(2 * len(share) - 2, 1)
  if n > sum(left.values()): raise ValueError(f"prompts: {n} asked for, {sum(left.values())} left.")
  for k in range(sum(counts.values()) + 1, sum(counts.values()) + n + 1):
    able = [name for name in share if left[name] > 0]
    behind = [name for name in able if share[name] * k - counts[name] >= d]
    name = min(behind or able, key=lambda name: (counts[name] + 1 - d) / share[name])
    counts[name] += 1
    left[name] -= 1
    order.append(name)
  return order


class Mixture(iterator.PromptIterator):
  """Iterates over several sources, each as `PromptIterator` does: its prompts are shuffled anew
  every epoch of its own and taken equally often, up to a difference of one.

  How many of `take` are of a source follows its weight, see `choose_sources`. A source of which too
  few are free, because of `skip`, is made up for in later calls.
  """

  def __init__(self, prompts: list[records.Prompt], weights: Mapping[str, float] | None = None, *,
               seed: int, paired: bool = False):
    """Starts with the first epoch of each source.

    Args:
      prompts: of all sources, with unique ids; `Prompt.source` names the source of each.
      weights: {source: its weight}; None: the numbers of prompts.
      seed, paired: as of `PromptIterator`.
    Raises:
      ValueError: as `PromptIterator`, or a source of `weights` has no prompts.
    """
    super().__init__(prompts, seed=seed, paired=paired)
    by_source: dict[str, list[records.Prompt]] = {name: [] for name in weights or ()}
    for p in prompts: by_source.setdefault(p.source, []).append(p)
    self._parts = {name: iterator.PromptIterator(
        some, seed=zlib.crc32(f"{seed}/{name}".encode()), paired=paired)
                   for name, some in by_source.items()}
    self._weights = {name: (weights or {name: len(some)})[name] for name, some in by_source.items()}
    self._taken = dict.fromkeys(by_source, 0)

  def take(self, n: int, skip: Iterable[str] = ()) -> list[records.Prompt]:
    """The next `n` prompts, all different and none with an id in `skip`."""
    self._find_busy(n, skip := set(skip))
    order = choose_sources(self._weights, self._taken, n // self._size, {
        name: part.count_free(skip) for name, part in self._parts.items()})
    drawn = {}
    for name, part in self._parts.items():
      self._taken[name] += (units := order.count(name))
      drawn[name] = iter(part.take(units * self._size, skip))
    return [p for name in order for p in itertools.islice(drawn[name], self._size)]

  def first(self, n: int) -> list[records.Prompt]:
    return Mixture(self.all(), self._weights, seed=self._seed, paired=self._size == 2).take(n)

  def state(self) -> dict:
    return dict(seed=self._seed, taken=dict(self._taken), **self._data(), sources={
        name: part.state() for name, part in self._parts.items()})

  def restore(self, state: dict) -> None:
    self._check_data(state)
    for name, part in self._parts.items(): part.restore(state["sources"][name])
    self._taken = dict(state["taken"])

  def _data(self):
    return dict(super()._data(), weights=dict(self._weights))
