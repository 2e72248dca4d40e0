"""Rows of stored completions, as rlx writes them and as public sets have them.

A row of a file is one completion:

  prompt      the text that the model reads; or `question`, to which prompts.template is applied
  completion  its text
  verdict     in [0, 1]; null if unknown
  group       name of the group that the row belongs to; the default is the prompt
  finish      eos, stop or length; the default is eos, for which an EOS token is added
  values      for each step, the share of right completions among those sampled after it
  start       the same of the prompt, before the first step; read by train_scorer.labels=relative
  sampled     number of tokens sampled for the row, including those sampled for `values` and `start`
  label       index of the first wrong step, -1 if all are right; for evaluation, and read by
              train_scorer.labels=both
  reference   what train_scorer.reference puts between prompt and completion
  margin      by how much it is better than a completion of margin 0, in units of the score
  spans       [start, end, label] of parts of the text; read by train_scorer.labels=spans
  segments    of an episode, in place of the completion: ["action" or "observation", token ids];
              prompt_ids are the token ids of its prompt

A row may have several completions instead, which are a group of their own: the texts `chosen` and
`rejected`, of which the first has the verdict 1 and the `margin` of the row and the other has 0 of
both, or a list `completions` with a list `verdicts`. `question` may be a list of messages, and
`messages` a whole dialogue that ends with a reply, whose turns of the assistant are actions.
Values of steps that people, a formal checker or another model gave are labels too: with `values` in
all rows nothing is sampled.
"""
import collections
from collections.abc import Iterator
import dataclasses
import math
import os
import pathlib
import sys
from typing import Any

from rlx.core import ranges, records
from rlx.io import rows as io_rows
from rlx.prompts import columns as columns_lib, scored_sets
from rlx.rollouts import trajectories
from rlx.stages import texts as texts_lib


@dataclasses.dataclass(frozen=True)
class Completion:
  """A row with its token ids."""
  row: dict
  prompt: list      # token ids
  ids: list         # EOS included
  group: str
  verdict: float    # NaN if unknown
  labels: tuple = ()  # one for each step, or each token, see `label_all`; NaN: none
  potentials: tuple = ()  # further labels of each step, with labels=both
  segments: tuple = ()  # of an episode: (kind, ids), whose ids are `ids`


def read(path: str | os.PathLike, texts: texts_lib.Texts) -> list[Completion]:
  """Reads the Completions of a file, in order.

  Raises:
    ValueError: the file does not exist, a row lacks a field or has an invalid one, or a text
      is too long; the message names the file and the line.
  """
  is_public = scored_sets.split_name(str(path)) is not None
  if not is_public and not pathlib.Path(path).is_file():
    raise ValueError(f"train_scorer: no file {path}.")
  entries: Iterator[tuple[str, scored_sets.Read]] = (
      scored_sets.read(str(path), lambda source: io_rows.rows(source, None, _KEY),
                       texts.step_separator, _KEY) if is_public else
      ((f"{path}:{i}", [row]) for i, row in io_rows.read_lines(pathlib.Path(path))))
  completions, dropped = [], collections.Counter[str]()
  for i, (where, entry) in enumerate(entries, 1):
    if isinstance(entry, str): dropped[entry] += 1
    for row in entry if isinstance(entry, list) else ():
      try:
        completions += [_read_one(x, where, texts) for x in _split(i, row, where)]
      except _Long as e:
        if not is_public: raise ValueError(str(e)) from None
        dropped[e.why] += 1
  for reason, n in sorted(dropped.items()):
    print(f"rlx: {path}: {n} rows are dropped: {reason}.", file=sys.stderr)
  if not completions:
    raise ValueError(f"{path}: no rows" + " that can be used" * bool(dropped) + ".")
  if len({"margin" in x.row for x in completions}) > 1:
    raise ValueError(f"{path}: some rows have a `margin` and others have none.")
  return completions


class _Long(ValueError):
  """A prompt or completion is too long; `why` without its numbers."""

  def __init__(self, where: str, key: str, n: int, most: int):
    super().__init__(f"{where} has {n} tokens; {key}={most}.")
    self.why = f"with more tokens than {key}={most}" if n else "without a completion"


def _read_one(row: dict, where: str, texts: texts_lib.Texts) -> Completion:
  """The Completion of a row of one; raises as `read`."""
  try:
    prompt, prompt_ids, segments = _encode(row, where, texts)
  except ValueError as e:
    raise ValueError(str(e) if str(e).startswith(where) else f"{where}: {e}") from None
  ids = [i for _, part in segments for i in part]
  if (spans := row.get("spans")) and spans[-1][1] > len(row.get("completion", "")):
    raise ValueError(f"{where}: spans={spans!r:.80}: ends of at most the length of the completion, "
                     f"{len(row.get('completion', ''))}.")
  for key, n, most in (("prompts.max_tokens", len(prompt_ids), texts.prompt_tokens),
                       ("rollouts.max_tokens", len(ids), texts.completion_tokens)):
    if not 0 < n <= most: raise _Long(where, key, n, most)
  if "completion" not in row: row = row | dict(completion=texts.tokenizer.decode(ids))
  return Completion(row, prompt_ids, ids, group=str(row.get("group", prompt)),
                    segments=tuple(segments) if len(segments) > 1 else (),
                    verdict=math.nan if row["verdict"] is None else float(row["verdict"]))


def _encode(row: dict, where: str, texts: texts_lib.Texts
            ) -> tuple[str, list[int], list[tuple[str, list[int]]]]:
  """(prompt, its ids, segments) of a row whose other fields are valid."""
  is_dialogue, prompt = "segments" in row or "messages" in row, row.get("prompt")
  if is_dialogue and not {"messages", "prompt_ids"} & row.keys() and not isinstance(prompt, str):
    raise ValueError(f"{where} has {sorted(row)}; needed are `segments` with `prompt_ids`, or with "
                     "a text `prompt`.")
  if not is_dialogue:
    if prompt is None and "question" in row: prompt = texts.prompt(_ask(row["question"], where))
    if not isinstance(prompt, str) or not isinstance(row.get("completion"), str):
      raise ValueError(f"{where} has {sorted(row)}; needed are texts `prompt` or `question`, and "
                       "`completion`, or `chosen` and `rejected`.")
  for key, allowed in _ALLOWED.items():
    if key in row or key == "verdict":
      ranges.check(f"{where}: {key}", row.get(key, "none"), allowed)
  if "messages" in row:
    prompt_ids, segments = texts.dialogue(_ask(row["messages"], where))
  elif "segments" in row:
    prompt_ids = row["prompt_ids"] if "prompt_ids" in row else texts.tokenizer.encode(str(prompt))
    segments = [(kind, ids) for kind, ids in row["segments"]]
  else:
    prompt_ids, ids = texts.tokenizer.pair(str(prompt), row["completion"])
    if texts.reference is not None:
      if not isinstance(row.get("reference"), str):
        raise ValueError(f"{where}: train_scorer.reference={texts.reference!r}: a text "
                         "`reference`.")
      prompt_ids = prompt_ids + texts.tokenizer.encode(
          texts.reference.replace("{}", row["reference"]), add_bos=False)
    if row.get("finish", "eos") == "eos": ids.append(texts.tokenizer.end_id)
    segments = [("action", ids)]
  return texts.tokenizer.decode(prompt_ids) if prompt is None else prompt, prompt_ids, segments


def _ask(question: str | list, where: str) -> records.Prompt:
  """The Prompt of a question, a text or messages."""
  text, messages = columns_lib.read_question(question, where)
  return records.Prompt(id="", text=text, messages=messages)


def _split(i: int, row: dict, where: str) -> list[dict]:
  """The completions of a row: one, two of a pair or those of a list."""
  rest = {key: x for key, x in row.items() if key not in (
      "chosen", "rejected", "margin", "completions", "verdicts")}
  if {"chosen", "rejected"} <= row.keys():
    if not all(isinstance(row[side], str) for side in ("chosen", "rejected")):
      pair = scored_sets.split_pair(row["chosen"], row["rejected"], row.get(
          "prompt", row.get("question")), where)
      if isinstance(pair, str): raise ValueError(f"{where}: a pair {pair}.")
      rest, row = {key: x for key, x in rest.items() if key != "prompt"} | dict(
          question=pair["question"]), row | pair
    if row["chosen"] == row["rejected"]:
      raise ValueError(f"{where}: a pair with two equal completions; leave it out, or name the "
                       "file as preferences:FILE, which drops such rows.")
    margins = dict(chosen=row["margin"], rejected=0.0) if "margin" in row else {}
    return [dict(dict(group=f"pair {i}"), **rest, **({"margin": margins[side]} if margins else {}),
                 completion=row[side], verdict=verdict)
            for side, verdict in (("chosen", 1.0), ("rejected", 0.0))]
  if "completions" not in row: return [row]
  texts, verdicts = row["completions"], row.get("verdicts")
  if not isinstance(texts, list) or not isinstance(verdicts, list) or len(texts) != len(verdicts):
    raise ValueError(f"{where}: `completions` and `verdicts` are lists of the same length.")
  return [dict(dict(group=f"list {i}"), **rest, completion=text, verdict=verdict)
          for text, verdict in zip(texts, verdicts)]


_KEY = "train_scorer.rollouts"


_SHARE = ranges.SHARE.or_none
_IDS = ranges.Kind("a list of token ids", lambda x: isinstance(x, list) and bool(x) and all(
    type(i) is int and i >= 0 for i in x))
_ALLOWED = {  # field -> the values that are valid
    "verdict": _SHARE,
    "values": ranges.Kind("a list of numbers from 0 to 1, or nulls",
                          lambda x: isinstance(x, list) and all(value in _SHARE for value in x)),
    "start": _SHARE,
    "finish": ranges.Kind(f"one of {list(records.FINISH)}", lambda x: x in records.FINISH),
    "sampled": ranges.WHOLE,
    "label": ranges.Range(-1, 2**31 - 1).or_none,
    "margin": ranges.ANY,
    "spans": ranges.Kind("a list of [start, end, label], in order, with labels from 0 to 1",
                         lambda x: _is_list_of_spans(x)),
    "prompt_ids": _IDS,
    "messages": ranges.Kind("a list of chat messages", lambda x: isinstance(x, list)),
    "segments": ranges.Kind("a list of [action or observation, token ids] that begins and ends "
                            "with an action", lambda x: _is_list_of_segments(x)),
    "group": ranges.Kind("a text or a whole number", lambda x: isinstance(x, str | int))}


def _is_list_of_spans(x: Any) -> bool:
  try:
    ends = [0, *(at for start, end, _ in x for at in (start, end))]
    return (isinstance(x, list) and all(label in _SHARE for *_, label in x)
            and all(type(at) is int for at in ends) and ends == sorted(ends))
  except (TypeError, ValueError):
    return False


def _is_list_of_segments(x: Any) -> bool:
  try:
    kinds = [kind for kind, ids in x if ids in _IDS]
    return (len(kinds) == len(x) > 0 and set(kinds) <= set(trajectories.KINDS)
            and kinds[0] == kinds[-1] == "action")
  except (TypeError, ValueError):
    return False
