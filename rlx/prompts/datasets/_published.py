"""What the readers of public data sets share.

A reader has SETS, {name: (source, training split, held-out split)}: prompts.source=NAME stands for
these and the reader (rlx/build/sets.py). A set without a test split holds its first rows out. Rows
whose reference cannot be checked are dropped with a reason, instead of refused as rows of a user's
own.
"""
from collections.abc import Callable, Iterable, Iterator, Mapping
import json
import re
from typing import Annotated, Any

from rlx.core import ranges, records
from rlx.prompts import columns as columns_lib

# Of a row: the fields of its Prompt, or why it is dropped.
Read = dict[str, Any] | str
Made = records.Prompt | records.Dropped

# How many tests of a program are kept: those with the longest inputs.
Most = Annotated[int, ranges.whole(1, 10000)]

# Between the boxes of one answer: $x=\boxed{3}$ or $x=\boxed{4}$.
_JOINS = re.compile(r"[\s$]*(,|(?:,\s*)?(?:or|and))[\s$]*(?:\w+\s*=\s*)?")


def make_prompts(name: str, rows: Iterable[Mapping], split: str,
                 read: Callable[[Mapping, str], Read]) -> Iterator[Made]:
  """Rows -> Prompts, or Dropped; ids are <name>/<split>/<row number>.

  Args:
    read: (row, where it stands) -> fields of a Prompt, or the reason why there is none.
  """
  for i, row in enumerate(rows):
    made, id_ = read(row, f"{name}: row {i} of {split}"), f"{name}/{split}/{i}"
    yield (records.Dropped(id_, made) if isinstance(made, str) else
           records.Prompt(**dict(dict(id=id_, is_public=True), **made)))


def read_problem(row: Mapping, where: str, *, verifier: str, question: str = "problem",
                 answer: str = "answer", is_solution: bool = False, meta: Iterable[str] = ()
                 ) -> Read:
  r"""A question with its answer, which is what stands in \boxed{} if there is one.

  Args:
    question, answer: columns; meta: columns that are copied where the row has them.
    is_solution: the column `answer` has whole solutions, which have to end with a box.
  Raises:
    ValueError: the row has no such column.
  """
  text, given = (columns_lib.find(row, column, where) for column in (question, answer))
  if columns_lib.is_missing(text): return "without a question"
  if columns_lib.is_missing(given) or given == []: return "without an answer"
  text, messages = columns_lib.read_question(text, where)
  answers = columns_lib.read_answers(given, where)
  stated = [find_boxed(a) if is_solution or re.search(r"\\f?box", a) else a.strip()
            for a in answers]
  right = tuple(filter(None, stated))
  if len(right) < len(stated): return r"without a closed \boxed{}"
  kind, first = str(row.get("question_type")).lower(), right[0]
  if kind == "proof" or first.lower() == "proof": return "proofs"
  if first.lower() == "notfound": return "without an answer"
  if kind == "mcq" and re.fullmatch("[A-H]", first) and not re.search(
      rf"(?<![A-Za-z]){first}\s*[).:}}．、：]", text):
    return "multiple-choice questions without their options"
  return dict(text=text, messages=messages, answer=first,
              answers=right if len(right) > 1 else (), verifier=verifier,
              meta={key: row[key] for key in meta if key in row})


def read_program(row: Mapping, where: str, tests: dict | str, *, question: str, verifier: str,
                 starter_code: str = "", answer: str = "", meta: Iterable[str] = ()) -> Read:
  """A question that is answered by a program, or by a function that begins as `starter_code`.

  Args:
    tests: as of `read_tests`; answer: a program that passes them, if the set has one.
  """
  if isinstance(tests, str): return tests
  if columns_lib.is_missing(asked := columns_lib.find(row, question, where)):
    return "without a question"
  text, messages = columns_lib.read_question(asked, where)
  if not messages:
    text += "\n\n" + (f"Complete this code:\n\n{starter_code}" if starter_code else
                      "Write a program that reads standard input and prints to standard output.")
  return dict(text=text, messages=messages, answer=answer, verifier=verifier,
              meta={key: row[key] for key in meta if key in row} | dict(tests=tests))


def read_tests(given: Any, most: int) -> dict[str, Any] | str:
  """The tests of a JSON text {"inputs", "outputs"}, which verifiers/code_tests.py reads, or why
  there are none. With "fn_name" they are arguments and results of a function, as APPS has them,
  otherwise the input and output of a program.

  Args:
    given: the text, or what it stands for; most: see `Most`.
  """
  try:
    # NaN and Infinity are no JSON: int refuses them.
    given = json.loads(given, parse_constant=int) if isinstance(given, str) else given
    pairs = list(zip(given["inputs"], given["outputs"], strict=True))
  except (KeyError, TypeError, ValueError, RecursionError):
    return "with tests that cannot be read"
  if not pairs: return "without tests"
  longest = sorted(range(len(pairs)), key=lambda i: -len(str(pairs[i][0])))[:most]
  inputs, outputs = zip(*(pairs[i] for i in sorted(longest)))
  return dict({k: given[k] for k in ("fn_name",) if given.get(k)}, inputs=list(inputs),
              outputs=list(outputs))


def find_boxed(solution: str) -> str | None:
  r"""Inside of the last \boxed{...} or \fbox{...}, or what follows "\boxed "; several that are
  joined by a word stand with it between them. None without one that is closed."""
  answer, end = None, 0
  for box in re.finditer(r"\\(?:boxed|fbox)", solution):
    inside, after = _read_box(solution, box.end())
    join = _JOINS.fullmatch(solution[end:box.start()]) if answer else None
    if join and inside:
      answer = f"{answer}{'' if join[1].startswith(',') else ' '}{join[1]} {inside}"
    else:
      answer = inside
    end = after
  return answer


def _read_box(text, start):
  """(inside of a box, where it ends); None for a box that is not closed."""
  if not text.startswith("{", start):
    inside = text[start:].partition("$")[0]  # "\boxed 5$"
    return inside.strip(" .\n"), start + len(inside)
  depth = 0
  for token in re.finditer(r"\\.|[{}]", text[start:], re.DOTALL):  # An escaped brace is none.
    depth += (token[0] == "{") - (token[0] == "}")
    if depth == 0: return text[start + 1:start + token.start()].strip(), start + token.end()
  return None, start
