"""Episodes from a decoder: turns of the policy, and what it reads between them.

A prompt is prefilled once. The keys and values of all tokens after it stay on the devices, in a
history with a row for each episode. Rows that have something to draw take turns in `slots`: a chunk
of decode steps copies the rows of the slots from the history, draws tokens and writes their keys
and values back. A row that has ended its turn leaves its slot and waits for its answer, which the
host gets from `answers` while other rows are decoded. Only the answer is then prefilled, with a few
rows at once and padded to one of a few widths.

Which rows share a chunk changes the last bits of their log-probabilities, and with them now and
then a token. It follows from the tokens alone, never from the clock: before each chunk the host
waits for the answers of the rows that have waited for most chunks, until enough rows can be
decoded. So the results are the same bits however long answers take.

What the policy draws is stored as it is drawn and never tokenised again. Position t of sample g
of prompt p is drawn with the same key as by `sampler`, so that results do not depend on the number
of slots, up to rounding.

On a mesh each device has slots and a history for its own rows; nothing is sent to others between
the prefill of the prompts and the end, except with a tensor axis.
"""
import dataclasses
import functools
import math
from typing import NamedTuple, Protocol

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import records
from rlx.models import decode as decoder, transformer
from rlx.rollouts import sampler

_EOS, _LENGTH, _STOP, _FAILED = map(records.FINISH.index, ("eos", "length", "stop", "environment"))
_DRAWS, _WAITS, _ENDED = range(3)  # What a row does.
_READ = 4      # An answer is prefilled for a quarter of the slots at once.
_NARROW = 16   # Least width of prefilled answers; others are 4, 16, ... times as wide.
_SHORT = 64    # Least number of columns of the history that a chunk reads.
# Default of `overlap`: on CPU, where a step costs less with fewer rows, and on other devices.
_OVERLAP = {True: 0.75, False: 0.5}


class Answer(NamedTuple):
  """What an action caused.

  ids: the tokens to read before the next turn; None: the episode has ended.
  reward: of the action; NaN: none.
  verdict: on the episode, if it ended here; NaN: that of the action before, if any.
  is_known: False if the environment failed for another reason than the action.
  """
  ids: list[int] | None
  reward: float = float("nan")
  is_known: bool = True
  verdict: float = float("nan")


class Answers(Protocol):
  """The environments of the rows of one call."""

  def submit(self, row: int, ids: list[int]) -> None:
    """Takes the tokens of a row's finished action, with those that end it."""

  def take(self, rows: list[int]) -> list[tuple[int, Answer]]:
    """The answers of these rows, in this order, once all have arrived."""


@dataclasses.dataclass(frozen=True)
class _Options(sampler.Options):
  """`sampler.Options`, and the sizes of what is read."""
  most_read: int = 0    # tokens of the longest answer

  @property
  def columns(self):
    """Columns of the history: every window that is written fits."""
    return self.max_tokens + max(self.chunk, self.reads[-1])

  @property
  def reads(self):
    """Widths of prefilled answers."""
    widths = [_NARROW]
    while widths[-1] < self.most_read: widths.append(4 * widths[-1])
    return widths

  @property
  def widths(self):
    """Numbers of columns of the history that a chunk may read; each is a program.

    A chunk reads the smallest number that covers its rows, because empty columns cost as much as
    filled ones. In the first chunk all rows are empty.
    """
    widths = [self.max_tokens]
    while widths[0] >= 2 * _SHORT: widths.insert(0, math.ceil(widths[0] / math.sqrt(2)))
    return [0] * (len(widths) > 1) + widths


@flax.struct.dataclass
class _Rows:
  """What does not change of each of the P * G rows."""
  prompt_len_B: jax.Array
  keys_B: jax.Array


def make(config, *, group, max_tokens, turn_tokens, turns, answer_tokens, chunk, slots=None,
         overlap=None, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, eos_ids=(), pad_id=0,
         stops=(), decode=None, keeps=False, lay_out=None, fetch=jax.device_get,
         put=jax.device_put):
  """Builds `sample(params, tokens_PX, prompt_len_P, prompt_P, key, answers, factor_T, weights)`.

  The result is Rollouts (numpy) with turn_BT, turn_rewards_BT and verdict_B. finish_B says how the
  last action ended: "length" also if the next answer does not fit or there are no more turns, and
  "environment" if the outcome is unknown. An action that is cut because the trajectory is
  full gets no answer; one that reaches turn_tokens does.

  Args:
    max_tokens: T, the largest number of tokens after the prompt, answers included.
    turn_tokens: the largest number of tokens of an action.
    turns: the largest number of actions.
    answer_tokens: the largest number of tokens of an answer.
    chunk: the largest number of decode steps per host synchronisation.
    slots: the largest number of rows decoded at once; a multiple of the number of devices over
      which rows are spread. None is all rows.
    overlap: the largest share of the unfinished rows that may wait for an answer while a chunk of
      others is decoded, below 1; on CPU also of the slots that may be empty then. None: 0.75 on
      CPU, 0.5 on other devices.
    Otherwise: as `sampler.make`; `stops` end an action.
  """
  shards = transformer.row_shards(config)
  options = _options(config, group, max_tokens, turn_tokens, answer_tokens, chunk, eos_ids, pad_id,
                     keeps, dict(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p))
  lay_out = lay_out or functools.partial(decoder.lay_out, config=config)
  place = put if config.rows is None else lambda tree: put(tree, lambda *_: config.rows)
  is_cpu = transformer.platform(config) == "cpu"
  if overlap is None: overlap = _OVERLAP[is_cpu]

  def sample(params, tokens_PX, prompt_len_P, prompt_P, key, answers, factor_T=None, weights=None):
    if weights is None: weights = lay_out(params)
    prompts, rows, history = _start(options, params, tokens_PX, prompt_len_P, prompt_P, key)
    tokens_PX, prompt_len_P, prompt_P = fetch((tokens_PX, prompt_len_P, prompt_P))
    b = len(prompt_len_P) * group
    most = b if slots is None else min(slots, b)
    size = most // shards
    least = size - math.floor(size * overlap) if is_cpu else size
    state = _State(b, np.repeat(tokens_PX[:, -1], group), max_tokens, turn_tokens, turns, pad_id,
                   options.kept)
    while np.any(state.status_B != _ENDED):
      while needed := _find_needed(state, shards, least, overlap):
        state.take_answers(answers.take(needed))
      for part in _batches(sorted(state.answer), b // shards, shards, max(size // _READ, 1)):
        history = _read(options, weights, rows, prompts, history, place(part.row_W),
                        *place(state.to_read(part, options.reads)))
      part = _slots(state, shards, size)
      if part is None: continue
      columns = int(np.max(state.count_B[part.rows_B]))
      history, *drawn = _advance(
          options, weights, rows, prompts, history,
          *place((part.row_W, *state.prepare_chunk(part))), place(part.enough_O), factor_T,
          width=_width(options.widths, columns), is_whole=part.is_whole)
      for row, ids in state.add_drawn(part, *fetch(drawn), stops, decode):
        answers.submit(row, ids)
    return state.rollouts(tokens_PX, prompt_len_P, prompt_P, group)

  return sample


def trace(config, params, weights, place, *, prompts, prompt_tokens, group, max_tokens,
          turn_tokens, turns, answer_tokens, chunk, slots=None, overlap=None, eos_ids=(), pad_id=0,
          keeps=False, **rule):
  """The largest programs of a call of `sample`, traced; see `sampler.trace`."""
  del turns, overlap  # The host's alone.
  options = _options(config, group, max_tokens, turn_tokens, answer_tokens, chunk, eos_ids, pad_id,
                     keeps, rule)
  array, shards = jax.ShapeDtypeStruct, transformer.row_shards(config)
  start = _start.trace(
      options, params, *place((array((prompts, prompt_tokens), jnp.int32),
                               array((prompts,), jnp.int32), array((prompts,), jnp.uint32))),
      jax.eval_shape(lambda: jax.random.key(0)))
  all_prompts, rows, history = place(start.out_info)
  b = prompts * group
  most = b if slots is None else min(slots, b)
  ints_W = place(array((most,), jnp.int32))
  few = max(most // shards // _READ, 1) * shards
  ints_N, ids_NL = place((array((few,), jnp.int32), array((few, options.reads[-1]), jnp.int32)))
  advance = _advance.trace(
      options, weights, rows, all_prompts, history, *[ints_W] * 5,
      place(array((shards,), jnp.int32)), None, width=max_tokens, is_whole=most == b)
  read = _read.trace(options, weights, rows, all_prompts, history, ints_N, ids_NL, ints_N)
  return {"prefill": (start, {k: x for k, x in params.items() if k != "head"}, weights),
          "decode chunk": (advance, (), None), "prefill of observations": (read, (), None)}


def _options(config, group, max_tokens, turn_tokens, answer_tokens, chunk, eos_ids, pad_id, keeps,
             rule):
  return _Options(config, group, max_tokens, min(chunk, turn_tokens, max_tokens),
                  tuple(rule.items()), tuple(sorted(eos_ids)), pad_id,
                  sampler.count_kept(config, keeps, rule),
                  most_read=min(answer_tokens, max_tokens))


@dataclasses.dataclass(frozen=True)
class _Part:
  """Rows that one program handles: `rows_B[i]` is in slot `at_B[i]` of all devices' slots."""
  rows_B: np.ndarray
  at_B: np.ndarray
  row_W: np.ndarray  # number of the row on its device; too large where a slot is empty
  is_whole: bool = False  # every row is in the slot of its number
  enough_O: np.ndarray | None = None  # a chunk ends when at most so many rows of a device run

  def spread(self, x_B, fill):
    """[W]: x_B[i] of row rows_B[i] in its slot."""
    out = np.full((len(self.row_W), *x_B.shape[1:]), fill, x_B.dtype)
    out[self.at_B] = x_B
    return out


def _part(rows_of, per_device, size, **more):
  """The _Part of lists of rows of each device, in `size` slots on each."""
  rows_B = np.array(sum(rows_of, []), np.int64)
  at_B = np.array([i * size + j for i, rows in enumerate(rows_of) for j in range(len(rows))],
                  np.int64)
  row_W = np.full(size * len(rows_of), per_device, np.int32)
  row_W[at_B] = rows_B % per_device
  return _Part(rows_B, at_B, row_W, **more)


def _batches(rows, per_device, shards, size):
  """Yields the _Parts of rows, `size` of each device at once."""
  rows_of = [[r for r in rows if r // per_device == s] for s in range(shards)]
  for i in range(0, max(map(len, rows_of)), size):
    yield _part([some[i:i + size] for some in rows_of], per_device, size)


def _find_needed(state, shards, least, overlap):
  """The waiting rows without whose answers too few could be decoded, the longest waiting first.

  A device needs `least` rows to decode, or all but the share `overlap` of its unfinished rows.
  """
  needed = []
  for status_B, order_B, first in zip(
      np.split(state.status_B, shards), np.split(state.order_B, shards),
      range(0, len(state.status_B), len(state.status_B) // shards)):
    waiting = np.flatnonzero(status_B == _WAITS)
    draws, unfinished = np.sum(status_B == _DRAWS), np.sum(status_B != _ENDED)
    n = max(min(least, unfinished - math.floor(unfinished * overlap)) - draws, 0)
    needed += (first + waiting[np.argsort(order_B[waiting])][:n]).tolist()
  return needed


def _slots(state, shards, size):
  """The _Part of the rows that are decoded next; None if there are none.

  Rows within a turn come first, then those whose last turn ended first.
  """
  ready = np.flatnonzero(state.status_B == _DRAWS)
  if not len(ready): return None
  per_device = len(state.status_B) // shards
  is_new_B = state.count_B == state.start_B
  ready = ready[np.lexsort((state.order_B[ready], is_new_B[ready]))]
  rows_of = [ready[ready // per_device == s].tolist() for s in range(shards)]
  most = max(map(len, rows_of))
  # Rows that have ended their turn are submitted when a quarter of the others have, too.
  enough_O = np.array([min(len(rows), size) * 3 // 4 for rows in rows_of], np.int32)
  if size == per_device and most > size // 4:
    row_W = np.full(len(state.status_B), per_device, np.int32)
    row_W[ready] = ready % per_device
    return _Part(ready, ready, row_W, is_whole=True, enough_O=enough_O)
  # Fewer slots when few rows are left: each number is a program.
  if most <= (few := max(size // 4, 1)): size = few
  return _part([rows[:size] for rows in rows_of], per_device, size, enough_O=enough_O)


def _width(widths, n):
  """The smallest of these widths that is at least n."""
  return next(w for w in widths if w >= n)


class _State:
  """The trajectories of B rows so far, on the host."""

  def __init__(self, b, last_token_B, max_tokens, turn_tokens, turns, pad_id, kept):
    self.max_tokens, self.turn_tokens, self.turns = max_tokens, turn_tokens, turns
    self.pad_id = pad_id
    self.status_B = np.full(b, _DRAWS)
    self.tokens_BT = np.full((b, max_tokens), pad_id, np.int32)
    self.logps_BT = np.zeros((b, max_tokens), np.float32)
    self.kept_BTK = np.full((b, max_tokens, kept), -1, np.int32) if kept else None
    self.turn_BT = np.full((b, max_tokens), -1, np.int32)
    self.rewards_BT = np.full((b, max_tokens), np.nan, np.float32)
    self.verdict_B = np.full(b, np.nan, np.float32)
    self.count_B = np.zeros(b, np.int32)   # tokens after the prompt
    self.start_B = np.zeros(b, np.int32)   # of the action that is being drawn
    self.turn_B = np.zeros(b, np.int32)    # its number
    self.order_B = np.arange(b)            # when its last turn ended, among all rows
    self.ends = b                          # the next such number
    self.fed_B = last_token_B.astype(np.int32)  # the token that is fed next
    self.finish_B = np.full(b, _LENGTH, np.int32)
    self.answer = {}                       # {row: ids} to be prefilled

  def prepare_chunk(self, part):
    """fed_W, count_W, finish_W and most_W of a chunk."""
    rows = part.rows_B
    most_B = np.minimum(self.start_B[rows] + self.turn_tokens, self.max_tokens).astype(np.int32)
    return (part.spread(self.fed_B[rows], 0), part.spread(self.count_B[rows], 0),
            part.spread(np.full(len(rows), sampler.RUNNING, np.int32), _LENGTH),
            part.spread(most_B, self.max_tokens))

  def add_drawn(self, part, tokens_WC, logps_WC, kept_WCK, count_W, finish_W, stops, decode):
    """Adds the tokens of a chunk; yields (row, ids) of the actions that have ended."""
    for row, w in zip(part.rows_B.tolist(), part.at_B.tolist()):
      old, end, finish = self.count_B[row], int(count_W[w]), int(finish_W[w])
      self.tokens_BT[row, old:end] = tokens_WC[w, :end - old]
      start = self.start_B[row]
      if stops:
        cut = sampler.stop_length(self.tokens_BT[row, start:end].tolist(), stops, decode)
        if cut is not None: end, finish = start + cut, _STOP
      self.logps_BT[row, old:end] = logps_WC[w, :end - old]
      if kept_WCK is not None: self.kept_BTK[row, old:end] = kept_WCK[w, :end - old]
      self.turn_BT[row, old:end] = self.turn_B[row]
      self.count_B[row], self.fed_B[row] = end, self.tokens_BT[row, end - 1]
      if finish == sampler.RUNNING: continue
      self.finish_B[row], self.order_B[row], self.ends = finish, self.ends, self.ends + 1
      is_cut = finish == _LENGTH and end == self.max_tokens
      self.status_B[row] = _ENDED if is_cut else _WAITS
      if not is_cut: yield row, self.tokens_BT[row, start:end].tolist()

  def take_answers(self, arrived):
    """Takes the answers that have arrived."""
    for row, answer in arrived:
      end, self.turn_B[row] = self.count_B[row], self.turn_B[row] + 1
      self.rewards_BT[row, end - 1] = answer.reward
      if not math.isnan(answer.verdict): self.verdict_B[row] = answer.verdict
      if not answer.is_known: self.finish_B[row] = _FAILED
      self.status_B[row] = _ENDED
      if not answer.is_known or answer.ids is None: continue
      # There must be room for another token, and a turn in which it is drawn.
      if self.turn_B[row] == self.turns or end + len(answer.ids) >= self.max_tokens:
        self.finish_B[row] = _LENGTH
        continue
      self.status_B[row] = _DRAWS
      self.start_B[row] = end + len(answer.ids)
      if answer.ids: self.answer[row] = answer.ids

  def to_read(self, part, widths):
    """tokens_WL and count_W of the answers of these rows, which are in the trajectories then.

    The first token that is fed is the last one drawn; the last one of the answer is fed next.
    """
    rows, count_B = part.rows_B.tolist(), self.count_B[part.rows_B]
    width = _width(widths, max(len(self.answer[row]) for row in rows))
    tokens_BL = np.zeros((len(rows), width), np.int32)
    for tokens_L, row in zip(tokens_BL, rows):
      ids, end = self.answer.pop(row), self.count_B[row]
      tokens_L[:len(ids)] = [self.fed_B[row], *ids[:-1]]
      self.tokens_BT[row, end:end + len(ids)] = ids
      self.count_B[row], self.fed_B[row] = end + len(ids), ids[-1]
    return part.spread(tokens_BL, 0), part.spread(count_B, 0)

  def rollouts(self, tokens_PX, prompt_len_P, prompt_P, group):
    is_in_BT = np.arange(self.max_tokens)[None] < self.count_B[:, None]
    # Tokens can be drawn after a stop string, before it is found.
    tokens_BT = np.where(is_in_BT, self.tokens_BT, np.int32(self.pad_id))
    return records.Rollouts(
        tokens_BS=np.concatenate([np.repeat(tokens_PX, group, axis=0), tokens_BT], axis=1),
        prompt_len_B=np.repeat(prompt_len_P, group), completion_len_B=self.count_B,
        sampler_logps_BT=self.logps_BT, finish_B=self.finish_B, prompt_P=prompt_P,
        turn_BT=self.turn_BT, turn_rewards_BT=self.rewards_BT, verdict_B=self.verdict_B,
        kept_BTK=self.kept_BTK)


@functools.partial(jax.jit, static_argnums=0)
def _start(options, params, tokens_PX, prompt_len_P, prompt_P, key):
  """Prefills all prompts; returns them, the rows, and an empty history."""
  group, config = options.group, options.config
  rows = _Rows(prompt_len_B=jnp.repeat(prompt_len_P, group),
               keys_B=sampler.keys_of(key, prompt_P, group))
  return (decoder.prompts(params, config, tokens_PX, prompt_len_P), rows,
          decoder.empty_history(config, len(rows.prompt_len_B), options.columns))


@functools.partial(jax.jit, static_argnums=0, static_argnames=("width", "is_whole"),
                   donate_argnums=4)
def _advance(options, weights, rows, prompts, history, row_W, fed_W, count_W, finish_W, most_W,
             enough_O, factor_T, *, width, is_whole):
  """Decodes a chunk of the rows in slots."""
  return sampler.run_on_each(
      functools.partial(_advance_shard, width=width, is_whole=is_whole), options,
      (rows, prompts, history, row_W, fed_W, count_W, finish_W, most_W, enough_O),
      (weights, factor_T))


def _advance_shard(options, rows, prompts, history, row_W, fed_W, count_W, finish_W, most_W,
                   enough_O, weights, factor_T, *, width, is_whole):
  own = lambda x_B: x_B.at[row_W].get(mode="clip")
  suffix = decoder.recall(history, options.config, row_W, count_W, width=width, free=options.chunk)
  _, _, finish_W, len_W, tokens_WC, logps_WC, kept_WCK, suffix = sampler.decode_chunk(
      options, weights, prompts if is_whole else _take_prompts(options, prompts, row_W), suffix,
      fed_W,
      count_W, finish_W, most_W, own(rows.keys_B), own(rows.prompt_len_B), enough_O[0], factor_T)
  history = decoder.remember(history, suffix, row_W, count_W, free=options.chunk)
  return history, tokens_WC, logps_WC, kept_WCK, len_W, finish_W


def _take_prompts(options, prompts, row_W):
  """The prompt of each slot, a copy for every one."""
  return jax.tree.map(lambda x: x.at[row_W // options.group].get(mode="clip"), prompts)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=4)
def _read(options, weights, rows, prompts, history, row_W, tokens_WL, count_W):
  """Prefills tokens after the history of the rows in slots."""
  return sampler.run_on_each(_prefill_shard, options,
                             (rows, prompts, history, row_W, tokens_WL, count_W), (weights,))


def _prefill_shard(options, rows, prompts, history, row_W, tokens_WL, count_W, weights):
  w, l = tokens_WL.shape
  width = options.max_tokens
  suffix = decoder.recall(history, options.config, row_W, count_W, width=width, free=l)
  columns_11T = jnp.arange(suffix.columns)[None, None, :]
  steps_1L = jnp.arange(l)[None, :]
  live_WLT = ((columns_11T >= width - count_W[:, None, None])
              & (columns_11T <= width + steps_1L[:, :, None]))
  position_W1 = (rows.prompt_len_B.at[row_W].get(mode="clip") - 1 + count_W)[:, None]
  _, suffix = decoder.step(
      weights, options.config, tokens_WL.ravel(), (position_W1 + steps_1L).ravel(),
      _take_prompts(options, prompts, row_W), suffix, live_WLT.reshape(w * l, -1), width)
  return decoder.remember(history, suffix, row_W, count_W, free=l)
