"""Filters of prompts, which are applied once, before any prompt is sampled."""
import collections
from collections.abc import Iterable, Iterator
import json
from typing import Callable

from absl import logging

from rlx.core import records

Report = Callable[[str, list, list[records.Prompt]], None]


def log_dropped(reason: str, prompts: list[records.Prompt], kept: list[records.Prompt]) -> None:
  """Warns of prompts that a filter drops, by their source: the report of all filters by default."""
  left = collections.Counter(p.source for p in kept)
  for source, n in collections.Counter(p.source for p in prompts).items():
    if dropped := n - left[source]:
      where = source and f" of {source}"
      logging.warning("%d of %d prompts%s dropped: %s.", dropped, n, where, reason)


def drop_unread(rows: Iterable[records.Prompt | records.Dropped], name: str,
                unread: list[records.Dropped] | None = None) -> Iterator[records.Prompt]:
  """The prompts of a data set without the rows that it dropped; logs how many, by reason.

  Args:
    name: the data set and split, for messages.
    unread: gets these rows, and nothing is logged.
  Raises:
    ValueError: it dropped all of them.
  """
  counts: collections.Counter[str] = collections.Counter()
  n = 0
  def describe() -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.most_common())
  try:
    for n, row in enumerate(rows, 1):
      if isinstance(row, records.Dropped):
        counts[row.reason] += 1
        if unread is not None: unread.append(row)
      else: yield row
    if counts and counts.total() == n:
      raise ValueError(f"prompts: all {n} rows of {name} are dropped: {describe()}.")
  finally:  # Also where only the first rows are read.
    if unread is None and 0 < counts.total() < n:
      logging.warning("prompts: dropped %d of %d rows of %s: %s.", counts.total(), n, name,
                      describe())


def drop_unjudged(prompts: list[records.Prompt], problems: dict[str, str],
                  name: str, *, report: Report | None = None) -> list[records.Prompt]:
  """The prompts without those of public sets that cannot be judged; logs how many and the first.

  Args:
    problems: {id of a prompt: why}; those of a user's own prompts are left, to be refused.
  Raises:
    ValueError: all prompts are dropped.
  """
  kept = [p for p in prompts if not (p.is_public and p.id in problems)]
  if dropped := [p for p in prompts if p.is_public and p.id in problems]:
    first = f"cannot be judged, first {dropped[0].id!r}: {problems[dropped[0].id]:.120}"
    if not kept: raise ValueError(f"prompts: all {len(prompts)} prompts of {name} {first}.")
    if report is None:
      logging.warning("prompts: dropped %d of %d prompts of %s: they %s.", len(dropped),
                      len(prompts), name, first)
    else: report("cannot be judged by the verifier", prompts, kept)
  return kept


def drop_longer(prompts: list[records.Prompt], length: Callable[[records.Prompt], int],
                max_tokens: int, *, report: Report = log_dropped) -> list[records.Prompt]:
  """Drops prompts that are longer than `max_tokens`.

  Args:
    length: prompt -> tokens, template included.
    report: is called with (reason, prompts, those that are kept), here and in the other filters.
  Raises:
    ValueError: every prompt is too long, or `length` refuses one.
  """
  lengths = []
  for p in prompts:
    try:
      lengths.append(length(p))
    except ValueError as e:
      raise ValueError(f"prompt {p.id!r}: {e}") from None
  kept = [p for p, n in zip(prompts, lengths) if n <= max_tokens]
  report(f"longer than prompts.max_tokens={max_tokens}", prompts, kept)
  if lengths and not kept:
    raise ValueError(f"prompts.max_tokens={max_tokens}: all {len(lengths)} prompts "
                     f"are longer; the shortest has {min(lengths)} tokens.")
  return kept


def drop_duplicates(prompts: list[records.Prompt],
                    read: Callable[[records.Prompt], str] = lambda p: p.text, *,
                    is_episode: bool = False, has_target: bool = False,
                    report: Report = log_dropped) -> list[records.Prompt]:
  """The first prompt of each question.

  Args:
    read: prompt -> the text that decides, which is what the model reads.
    has_target: whether `answer` is learned, as in fine-tuning. The same question with another
      answer is then another example.
    is_episode: whether an environment reads `answer` and `meta` of the prompts, such as the
      database that a question is about. Prompts that differ in them are then different questions;
      otherwise equal texts are the same question.
  """
  first: dict[tuple, records.Prompt] = {}
  for p in prompts:
    hidden = (p.answer, json.dumps(p.meta, sort_keys=True, default=repr)) if is_episode else (
        p.answer,) if has_target else ()
    first.setdefault((_normalize(read(p)), *hidden), p)
  kept = list(first.values())
  report("duplicates", prompts, kept)
  return kept


def drop_held_out(prompts: list[records.Prompt], held_out: list[records.Prompt],
                  read: Callable[[records.Prompt], str], *, report: Report = log_dropped
                  ) -> list[records.Prompt]:
  """Drops prompts that are also used in evaluation; `read` as in `drop_duplicates`.

  Raises:
    ValueError: every prompt is.
  """
  texts = {_normalize(read(p)) for p in held_out}
  kept = [p for p in prompts if _normalize(read(p)) not in texts]
  report("also in the evaluation split", prompts, kept)
  if prompts and not kept:
    raise ValueError(f"prompts.split: all {len(prompts)} training prompts are also "
                     "in eval.split; name different splits.")
  return kept


def _normalize(text):
  """The text with single spaces: texts that differ in whitespace only are the same question."""
  return " ".join(text.split())
