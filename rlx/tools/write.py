"""Lets a language model write rows of data about questions and their stored completions.

  rlx write base task=rubric rows=questions.jsonl to=rubrics.jsonl \\
      verifier.judge.url=URL verifier.judge.model=NAME
  rlx write base task=contrast rows=rubrics.jsonl completions=graded.jsonl to=refined.jsonl \\
      verifier.judge.url=URL verifier.judge.model=NAME

rlx/tools/writing.py has the tasks: rubric, contrast, split, choose, harder and refine. The model
is `verifier.judge` of the config, a url or a function text -> reply.

Rows of `rows` and `completions` about the same question belong together:

  {"question", "answer", "items"}                  a question, with or without a rubric
  {"question", "completion", "verdict", "items"}   a completion; items: [{"name", "value"}], as in
                                                   completions.jsonl of a run, or {name: value}

What is written are rows of `jsonl:`; further columns of the questions are kept. Questions of which
the reply states nothing are left out and counted, so that a second run asks about them alone: a
question that `to` has already is not asked about again.
"""
import collections
import json
import math
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any

from rlx.build import judges as build_judges, keys
from rlx.core import records, resolve
from rlx.io import rows as io_rows
from rlx.prompts import columns as columns_lib
from rlx.tools import writing
from rlx.verifiers import items as items_lib, judge

_ASKED = ("question", "problem", "prompt")  # Columns of what is asked, the first that a row has.
_AT_ONCE = 256  # Questions whose rows are written together.
_SOURCE = "written_from"  # Column that says from which question a row was made.


def main(config: keys.Config, *, task: str = "", rows: Any = None, to: str = "",
         completions: Any = None, share: str = "0.5") -> dict[str, Any]:
  """Writes the rows that a model makes of questions, and returns {"written", reason: number}.

  Args:
    task: a name of `writing.TASKS`.
    rows, completions: sources of rows (rlx/io/rows.py).
    to: the .jsonl file; rows are added to it.
    share: see `writing.Task`.
  Raises:
    ValueError: one line that says what is missing or cannot be read.
    RuntimeError: no reply could be read, of any question.
  """
  if task not in writing.TASKS:
    raise ValueError(f"task={task!r}: one of {', '.join(writing.TASKS)}.")
  if rows is None or not to: raise ValueError("rlx write: rows=FILE and to=FILE are needed.")
  try:
    most = float(share)
  except ValueError:
    most = math.nan
  if not 0 <= most <= 1: raise ValueError(f"share={share!r}: a number from 0 to 1.")
  options = build_judges.list_judges(config)
  _check(options)
  path = pathlib.Path(to)
  done = {row[_SOURCE] for row in io_rows.rows(str(path))} if path.exists() else set()
  graded = io_rows.rows(completions, None, "completions") if completions else ()
  questions = [q for q in read([*io_rows.rows(rows, None, "rows"), *graded]) if q.text not in done]
  counts = collections.Counter[str]()
  path.parent.mkdir(parents=True, exist_ok=True)
  for start in range(0, len(questions), _AT_ONCE):  # What is written survives an interruption.
    part = questions[start:start + _AT_ONCE]
    made = writing.write(writing.TASKS[task](share=most), part, options)
    counts.update(x.reason if isinstance(x, records.Dropped) else "written" for x in made)
    with path.open("a", encoding="utf-8") as f:
      f.writelines(json.dumps({**x, _SOURCE: question.text}) + "\n"
                   for question, x in zip(part, made) if not isinstance(x, records.Dropped))
  if counts and all(reason.startswith(writing.UNKNOWN) for reason in counts):
    (reason, n), *_ = counts.most_common()
    raise RuntimeError(f"{path}: no row of {len(questions)} questions; {n} {reason}")
  print(f"{path}: {counts['written']} rows of {len(questions)} questions" + "".join(
      f"\n  {n} {reason}" for reason, n in counts.most_common() if reason != "written"))
  return dict(counts)


def read(rows: Iterable[Mapping[str, Any]]) -> list[writing.Question]:
  """The questions of rows with their completions, see the docstring of this module.

  Raises:
    ValueError: a row has no question, or a completion, verdict or items that cannot be read.
  """
  columns_of: dict[str, dict[str, Any]] = {}
  completions_of: dict[str, list[writing.Completion]] = {}
  for i, row in enumerate(rows):
    where = f"row {i}"
    asked = next((row[key] for key in _ASKED if key in row), None)
    if asked is None: raise ValueError(f"{where} has {sorted(row)}; it needs `question`.")
    text, _ = columns_lib.read_question(asked, where)
    items = row.get("items")
    if isinstance(items, Mapping): items = [dict(name=k, value=v) for k, v in items.items()]
    if items is not None and (not items_lib.are_rows(items) or not all(
        isinstance(x.get("name"), str) for x in items)):
      raise ValueError(f"{where}: items={items!r:.60}: a list of dicts with a `name`.")
    columns = columns_of.setdefault(text, {})
    if "completion" in row:
      completions_of.setdefault(text, []).append(_read_completion(row, items, where))
    else: columns |= {key: x for key, x in row.items() if key not in _ASKED}
  return [_join(text, dict(columns), completions_of.get(text, []))
          for text, columns in columns_of.items()]


def _read_completion(row, items, where):
  verdict = columns_lib.read_number(row.get("verdict"))
  if not isinstance(row["completion"], str) or not isinstance(verdict, int | float | None):
    raise ValueError(f"{where}: completion={row['completion']!r:.40}, verdict={verdict!r:.40}: a "
                     "text and a number, or null.")
  return writing.Completion(
      row["completion"], math.nan if verdict is None else float(verdict),
      {x["name"]: float(x["value"]) for x in items or () if x.get("value") is not None})


def _join(text, columns, completions):
  """The question, whose items may be those of its completions."""
  order = lambda x: (math.isnan(x.score), -x.score if not math.isnan(x.score) else 0.0)
  answer, items = columns.pop("answer", ""), columns.pop("items", None)
  columns.pop(_SOURCE, None)
  return writing.Question(text, answer if isinstance(answer, str) else str(answer),
                          tuple(items or ()), tuple(sorted(completions, key=order)), columns)


def _check(options):
  """Refuses a judge that cannot write."""
  if options["url"]:
    if problem := judge.find_problem(dict(options, probability=False), "judge.chat"):
      key, value, allowed = problem
      raise ValueError(f"{key}={value!r:.80}: {allowed}.")
  elif options["function"]: resolve.lookup("verifiers", options["function"],
                                           "verifier.judge.function")
  else: raise ValueError("rlx write: verifier.judge.url and verifier.judge.model, or "
                         "verifier.judge.function, say who writes.")
