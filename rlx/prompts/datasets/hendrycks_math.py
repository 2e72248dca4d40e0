r"""MATH, competition problems (Hendrycks et al. 2021, arXiv:2103.03874).

The answer is in the last \boxed{...} of the worked solution, or in the last ones where only words
such as "or" stand between them. Rows have "problem", "solution", "level" and "type".
"""
import re

from rlx.core import records
from rlx.prompts import columns as columns_lib

# Between the boxes of one answer: $x=\boxed{3}$ or $x=\boxed{4}$.
_JOINS = re.compile(r"[\s$]*(,|(?:,\s*)?(?:or|and))[\s$]*(?:\w+\s*=\s*)?")


def prompts(rows, split, *, verifier="math_answer.boxed"):
  """Rows -> Prompts; level and type go into `meta`."""
  for i, row in enumerate(rows):
    problem, solution = (columns_lib.find(row, name, f"hendrycks_math: row {i} of {split}")
                         for name in ("problem", "solution"))
    answer = _find_boxed(solution)
    if not answer: raise ValueError(f"hendrycks_math: row {i} of {split} has no \\boxed answer.")
    yield records.Prompt(id=f"hendrycks_math/{split}/{i}", text=problem, answer=answer,
                         verifier=verifier, meta={k: row[k] for k in ("level", "type") if k in row})


def _find_boxed(solution):
  r"""Inside of the last \boxed{...} or \fbox{...}, or what follows "\boxed "; several that are
  joined by a word stand with it between them."""
  answer, end = None, 0
  for box in re.finditer(r"\\(?:boxed|fbox)", solution):
    inside, after = _read_box(solution, box.end())
    join = _JOINS.fullmatch(solution[end:box.start()]) if answer else None
    if join and inside:
      answer += ("" if join[1].startswith(",") else " ") + f"{join[1]} {inside}"
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
