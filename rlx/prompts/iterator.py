"""Endless, resumable iteration over prompts."""
import zlib

import numpy as np


class PromptIterator:
  """Shuffles anew every epoch; its state is a few numbers.

  Over any number of epochs every prompt is taken equally often (up to one
  turn). A prompt whose turn comes while it is already in the draw, as can
  happen across the end of an epoch, waits for the next draw: completions are
  keyed by prompt id, so the same prompt twice would be sampled twice alike.
  """

  def __init__(self, prompts, *, seed):
    """`prompts`: non-empty list with unique ids."""
    self._prompts = prompts
    self._index = {p.id: i for i, p in enumerate(prompts)}
    if len(self._index) < len(prompts) or not prompts:
      raise ValueError(f"prompts: {len(prompts)} prompts have {len(self._index)} "
                       "different ids; ids must be unique and at least one.")
    self._seed, self._epoch, self._position = seed, 0, 0
    self._waiting = []           # Indices whose turn has come; first in the next take.
    self._order = self._shuffled()

  def take(self, n, skip=()):
    """The next `n` prompts, all different and none with an id in `skip`."""
    busy = {self._index[i] for i in skip if i in self._index}
    if n > len(self._prompts) - len(busy):
      raise ValueError(f"prompts: {n} different ones asked for, there are "
                       f"{len(self._prompts)} and {len(busy)} are in use.")
    taken, still_waiting = [], []
    for i in self._waiting:
      if i in busy or len(taken) == n:
        still_waiting.append(i)
      else:
        taken.append(i)
        busy.add(i)
    self._waiting = still_waiting
    while len(taken) < n:
      i = self._next()
      if i not in busy:
        taken.append(i)
        busy.add(i)
      elif i not in self._waiting:
        self._waiting.append(i)
    return [self._prompts[i] for i in taken]

  def all(self):
    """Every prompt once."""
    return list(self._prompts)

  def first(self, n):
    """The first `n` prompts of the first epoch, whatever was taken since."""
    return PromptIterator(self._prompts, seed=self._seed).take(n)

  def by_id(self, ids):
    """The prompts with these ids, in this order."""
    if unknown := [i for i in ids if i not in self._index]:
      raise ValueError(f"prompts: no prompt has the id {unknown[0]!r}; "
                       "the data differs from the checkpoint's.")
    return [self._prompts[self._index[i]] for i in ids]

  def state(self):
    """What `restore` needs, as plain ints and lists."""
    return dict(seed=self._seed, epoch=self._epoch, position=self._position,
                waiting=list(self._waiting), count=len(self._prompts),
                ids=_fingerprint(self._prompts))

  def restore(self, state):
    """Continues where `state` was taken, over the same prompts.

    Raises:
      ValueError: the prompts or the seed are not those of the state.
    """
    for key, now in (("seed", self._seed), ("count", len(self._prompts)),
                     ("ids", _fingerprint(self._prompts))):
      if state[key] != now:
        raise ValueError(f"prompts: {key} is {now} but was {state[key]} in the "
                         "checkpoint; resume with the same data and seed.")
    self._epoch, self._position = state["epoch"], state["position"]
    self._waiting = list(state["waiting"])
    self._order = self._shuffled()

  def _next(self):
    if self._position == len(self._order):
      self._epoch, self._position = self._epoch + 1, 0
      self._order = self._shuffled()
    self._position += 1
    return int(self._order[self._position - 1])

  def _shuffled(self):
    seeds = [self._seed, zlib.crc32(b"prompts"), self._epoch]
    return np.random.default_rng(seeds).permutation(len(self._prompts))


class PairIterator:
  """A PromptIterator over questions that come in two wordings; both are taken at once.

  A prompt's `meta["pair"]` is the id of the other wording. They follow each other.
  """

  def __init__(self, prompts, *, seed):
    """`prompts`: as of PromptIterator, each with its pair among them."""
    by_id, self._other, firsts = {p.id: p for p in prompts}, {}, []
    for p in prompts:
      other = by_id.get(p.meta.get("pair"))
      if other is None or other.meta["pair"] != p.id:
        raise ValueError(f"prompts.paired=True: {p.id!r} has no other wording among the "
                         "prompts; prompts.dataset has to name it in meta['pair'].")
      if other.id not in self._other:
        firsts.append(p)
        self._other[p.id] = other
    self._firsts = PromptIterator(firsts, seed=seed)

  def take(self, n, skip=()):
    """The next `n` prompts, n / 2 questions; `skip` is empty: none waits for a draw."""
    if n % 2 or skip: raise ValueError(f"prompts: {n} of them, {list(skip)} in use.")
    return self._both(self._firsts.take(n // 2))

  def all(self):
    """As of PromptIterator."""
    return self._both(self._firsts.all())

  def first(self, n):
    """As of PromptIterator; n is even."""
    return self._both(self._firsts.first(n // 2))

  def _both(self, firsts):
    return [q for p in firsts for q in (p, self._other[p.id])]

  def by_id(self, ids):
    """None: see `take`."""
    if ids: raise ValueError(f"prompts: {list(ids)} asked for by id.")
    return []

  def state(self):
    return self._firsts.state()

  def restore(self, state):
    self._firsts.restore(state)


def _fingerprint(prompts):
  """A number that changes with the ids or their order."""
  return zlib.crc32("\n".join(p.id for p in prompts).encode())
