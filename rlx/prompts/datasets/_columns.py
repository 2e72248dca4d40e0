"""Prompts of rows whose columns are named by a config."""
import math
from typing import Annotated

from rlx.core import ranges, records
from rlx.prompts import columns as columns_lib

# Columns in whose absence a verifier silently reads something else.
_READ = ("items", "reference")


def prompts(name, rows, split, *, question="question", answer="answer",
            verifier="math_answer.final", meta=(), tools=None,
            max_tokens=None, first_reward=None,
            lowest: Annotated[float, ranges.Range(1e-6, 1)] = 1.0):
  """Rows -> Prompts; ids are <name>/<split>/<row number>.

  Args:
    question, answer: columns, or those inside a column, with a dot (reward_model.ground_truth); see
      rlx/prompts/columns.py. A dialogue that ends with a reply, for `rlx sft`, needs no answer.
    verifier: a verifier (<module>.<function> or <package.module>:<function>), or the column
      that names it.
    meta: columns that are copied to the prompts' meta, such as the difficulty. `items`, the parts
      of a verdict (rlx/verifiers/items.py), and `reference` (embedding.py) are if a row has them.
    tools: column of tools that the chat template describes.
    max_tokens: column of the most tokens of a completion, at most rollouts.max_tokens; a row
      without a value has that.
    first_reward: column of the mean reward of the initial policy's completions; with it only the
      share `lowest` of the rows is used, those of the lowest rewards. Rows without a value stay.
  """
  meta = meta.split(",") if isinstance(meta, str) else meta
  left: set[int] = set()
  if first_reward:
    rows = list(rows)
    left = _find_higher(rows, split, first_reward, lowest)
  for i, row in enumerate(rows):
    where = f"row {i} of {split}"
    if i in left:
      yield records.Dropped(f"{name}/{split}/{i}", "with higher first rewards")
      continue
    def read(key, column, reader=lambda value, where: value):
      value = columns_lib.find(row, column, where, f"prompts.columns.{key}")
      return reader(value, f"{where}: column {column!r}")
    text, messages = read("question", question, columns_lib.read_question)
    is_dialogue = messages and messages[-1]["role"] == "assistant" and answer not in row
    answers = ("",) if is_dialogue else read("answer", answer, columns_lib.read_answers)
    yield records.Prompt(
        id=f"{name}/{split}/{i}", text=text, messages=messages, answer=answers[0],
        answers=answers if len(answers) > 1 else (),
        verifier=verifier if {".", ":"} & set(verifier) else read(
            "verifier", verifier, columns_lib.read_answers)[0],
        meta={column: row[column] for column in _READ if not columns_lib.is_missing(
            row.get(column))} | {column: read("meta", column) for column in meta},
        tools=read("tools", tools, columns_lib.read_tools) if tools else (),
        max_tokens=read("max_tokens", max_tokens, columns_lib.read_limit) if max_tokens else None)


def _find_higher(rows, split, column, lowest):
  """The indices of rows that are not among the share of the lowest rewards; of equal ones the first
  rows are. (Pre-PPO of Shen et al. 2025, arXiv:2503.22230.)"""
  known = {i: x for i, row in enumerate(rows) if (x := row.get(column)) is not None}
  for i, x in known.items():
    if isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x):
      raise ValueError(f"row {i} of {split}: column {column!r}: {x!r:.60} is no number.")
  return set(sorted(known, key=known.__getitem__)[math.ceil(lowest * len(known)):])
