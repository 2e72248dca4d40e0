r"""MATH, competition problems (Hendrycks et al. 2021, arXiv:2103.03874).

The answer is in the last \boxed{...} of the worked solution. Rows have "problem", "solution",
"level" and "type".
"""
import re

from rlx.core import records


def prompts(rows, split, *, verifier="math_answer.boxed"):
  """Rows -> Prompts; level and type go into `meta`."""
  for i, row in enumerate(rows):
    answer = _find_boxed(row["solution"])
    if not answer: raise ValueError(f"hendrycks_math: row {i} of {split} has no \\boxed answer.")
    yield records.Prompt(id=f"hendrycks_math/{split}/{i}", text=row["problem"], answer=answer,
                         verifier=verifier, meta={k: row[k] for k in ("level", "type") if k in row})


def _find_boxed(solution):
  r"""Inside of the last \boxed{...} or \fbox{...}, or what follows "\boxed "."""
  rest = re.split(r"\\(?:boxed|fbox)", solution)
  if len(rest) == 1: return None
  rest = rest[-1]
  if not rest.startswith("{"):
    return rest.partition("$")[0].strip(" .\n")  # "\boxed 5$"
  depth = 0
  for i, c in enumerate(rest):
    depth += (c == "{") - (c == "}")
    if depth == 0: return rest[1:i].strip()
  return None
