"""Converts lists of token ids to left-padded prompts and right-padded completions, and back."""
import math
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from rlx.core import records

_EOS = records.FINISH.index("eos")  # Empty completions end with this: they are not truncated.


def bucket(n: int, smallest: int) -> int:
  """The smallest of `smallest`, 4 `smallest`, 16 `smallest`, ... that is >= n.

  Each width that a run meets is compiled, so that they are few; packing skips the padding.

  Example:
    >>> padding.bucket(17, 8)
    32
  """
  while smallest < n: smallest *= 4
  return smallest


def list_widths(most: int, multiple: int) -> list[int]:
  """Widths down from `most`, at most eight: each is 1/sqrt(2) of the next, rounded up.

  Example:
    >>> padding.list_widths(64, 8)
    [8, 16, 24, 32, 48, 64]
  """
  return sorted({min(math.ceil(most * 2**(-i / 2) / multiple) * multiple, most) for i in range(8)})


def pad_left(sequences: Sequence[Sequence[int]], width: int,
             pad_id: int) -> tuple[np.ndarray, np.ndarray]:
  """Lists of token ids -> (tokens_PX int32, lengths_P int32).

  Raises:
    ValueError: a prompt is empty or longer than `width`.
  Example:
    >>> padding.pad_left([[7, 8], [9]], 3, 0)[0].tolist()
    [[0, 7, 8], [0, 0, 9]]
  """
  tokens_PX = np.full((len(sequences), width), pad_id, np.int32)
  for row, ids in zip(tokens_PX, sequences):
    if not 0 < len(ids) <= width:
      raise ValueError(f"A prompt has {len(ids)} tokens; 1 to {width} "
                       "(prompts.max_tokens) are allowed.")
    row[width - len(ids):] = ids
  return tokens_PX, np.array([len(ids) for ids in sequences], np.int32)


def pad_right(sequences: Sequence[Sequence[int]], width: int,
              pad_id: int) -> tuple[np.ndarray, np.ndarray]:
  """Lists of token ids -> (tokens_BT int32, lengths_B int32).

  Raises:
    ValueError: a sequence is longer than `width`.
  """
  tokens_BT = np.full((len(sequences), width), pad_id, np.int32)
  for row, ids in zip(tokens_BT, sequences):
    if len(ids) > width:
      raise ValueError(f"A completion has {len(ids)} tokens; at most {width} "
                       "(rollouts.max_tokens) are allowed.")
    row[:len(ids)] = ids
  return tokens_BT, np.array([len(ids) for ids in sequences], np.int32)


def select(parts: Sequence[records.Rollouts], rows_B: np.ndarray,
           groups_P: np.ndarray) -> records.Rollouts:
  """Selects rows and groups of several Rollouts (numpy), numbered as in their `join`."""
  whole = join(parts)
  rows = jax.tree.map(lambda x: x[rows_B], whole.replace(prompt_P=None))
  return rows.replace(prompt_P=jax.tree.map(lambda x: x[groups_P], whole.prompt_P))


def join(parts: Sequence[records.Rollouts]) -> records.Rollouts:
  """Concatenates several Rollouts (numpy)."""
  return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def make_empty(tokens_PX: np.ndarray, prompt_len_P: np.ndarray, prompt_P: np.ndarray, group: int,
               width: int, kept: int = 0) -> records.Rollouts:
  """Rollouts (numpy) whose G completions of every prompt have no token.

  Args:
    kept: K of kept_BTK; 0: there is none.
  """
  b = len(tokens_PX) * group
  arrays: dict[str, Any] = dict(
      tokens_BS=np.pad(np.repeat(tokens_PX, group, axis=0), ((0, 0), (0, width))),
      prompt_len_B=np.repeat(prompt_len_P, group), prompt_P=prompt_P,
      completion_len_B=np.zeros(b, np.int32), finish_B=np.full(b, _EOS, np.int32),
      sampler_logps_BT=np.zeros((b, width), np.float32),
      kept_BTK=np.full((b, width, kept), -1, np.int32) if kept else None)
  return records.Rollouts(**arrays)


def empty_rows(rollouts: records.Rollouts, rows_B: np.ndarray) -> records.Rollouts:
  """Returns a copy (numpy) in which the completions of these rows are empty."""
  return rollouts.replace(completion_len_B=np.where(rows_B, 0, rollouts.completion_len_B),
                          finish_B=np.where(rows_B, _EOS, rollouts.finish_B),
                          sampler_logps_BT=np.where(rows_B[:, None], 0, rollouts.sampler_logps_BT))


def batches(items: Sequence[Any], size: int) -> Iterator[list]:
  """Yields lists of `size` items in order; items from the start fill the last list.

  Example:
    >>> list(padding.batches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e', 'a']]
  """
  for i in range(0, len(items), size):
    yield [items[j % len(items)] for j in range(i, i + size)]


def put_last(rollouts: records.Rollouts, completions_P: Sequence[Sequence[int]],
             finish: int) -> records.Rollouts:
  """Replaces the last row of each group by a completion that was not sampled. Numpy.

  Args:
    completions_P: lists of token ids, EOS included.
    finish: how they end, an index into FINISH.
  Returns:
    rollouts; sampler_logps_BT is 0 on those rows, because it is unknown.
  """
  x = rollouts.prompt_width
  group = len(rollouts.tokens_BS) // len(completions_P)
  last_P = np.arange(len(completions_P)) * group + group - 1
  new = {name: np.array(getattr(rollouts, name)) for name in (
      "tokens_BS", "completion_len_B", "sampler_logps_BT", "finish_B")}
  # Nothing reads the columns after the end.
  new["tokens_BS"][last_P, x:], new["completion_len_B"][last_P] = pad_right(
      completions_P, new["sampler_logps_BT"].shape[1], 0)
  new["sampler_logps_BT"][last_P], new["finish_B"][last_P] = 0.0, finish
  if rollouts.kept_BTK is not None:
    new["kept_BTK"] = np.array(rollouts.kept_BTK)
    new["kept_BTK"][last_P] = -1
  return rollouts.replace(**new)


def trim(rollouts: records.Rollouts, multiple: int) -> records.Rollouts:
  """Removes completion columns that no row uses, down to one of `list_widths`."""
  longest = int(np.max(np.asarray(rollouts.completion_len_B)))
  width = next(w for w in list_widths(rollouts.sampler_logps_BT.shape[1], multiple)
               if w >= longest)
  others = {name: x[:, :width] for name in ("turn_BT", "turn_rewards_BT", "kept_BTK")
            if (x := getattr(rollouts, name)) is not None}
  return rollouts.replace(tokens_BS=rollouts.tokens_BS[:, :rollouts.prompt_width + width],
                          sampler_logps_BT=rollouts.sampler_logps_BT[:, :width], **others)


def completions(rollouts: records.Rollouts) -> list[list[int]]:
  """Rollouts -> list of B lists of token ids, EOS included."""
  ids_BT = np.asarray(rollouts.completions_BT)
  return [row[:n].tolist() for row, n in zip(ids_BT, np.asarray(rollouts.completion_len_B))]


def append(rollouts: records.Rollouts, token_id: int) -> records.Rollouts:
  """Returns a copy (numpy) with this token after every completion, in one more column."""
  end_B = rollouts.prompt_width + rollouts.completion_len_B
  tokens_BS = np.pad(rollouts.tokens_BS, ((0, 0), (0, 1)))
  tokens_BS[np.arange(len(end_B)), end_B] = token_id
  others = {name: np.pad(x, ((0, 0), (0, 1), *[(0, 0)] * (x.ndim - 2)), constant_values=fill)
            for name, fill in (("turn_BT", -1), ("turn_rewards_BT", np.nan), ("kept_BTK", -1))
            if (x := getattr(rollouts, name)) is not None}
  return rollouts.replace(
      tokens_BS=tokens_BS, completion_len_B=rollouts.completion_len_B + 1,
      sampler_logps_BT=np.pad(rollouts.sampler_logps_BT, ((0, 0), (0, 1))), **others)
