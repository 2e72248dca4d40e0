"""Prompts of rows whose columns are named by a config."""
from rlx.core import records


def prompts(name, rows, split, *, question="question", answer="answer",
            verifier="math_answer.final", meta=()):
  """Rows -> Prompts; ids are <name>/<split>/<row number>.

  Args:
    question, answer: columns.
    verifier: a verifier (<module>.<function> or <package.module>:<function>), or the column
      that names it.
    meta: columns that are copied to the prompts' meta, such as the difficulty.
  """
  columns = dict(question=question, answer=answer)
  if not {".", ":"} & set(verifier): columns["verifier"] = verifier
  columns |= {f"meta.{column}": column for column in meta}
  for i, row in enumerate(rows):
    for key, column in columns.items():
      if column not in row:
        raise ValueError(f"prompts.columns.{key}={column!r}: row {i} of {split} has {sorted(row)}.")
      if (row[column] is None or row[column] == "") and not key.startswith("meta."):
        raise ValueError(f"row {i} of {split} has no {column!r}.")
    yield records.Prompt(id=f"{name}/{split}/{i}", text=str(row[question]), answer=str(row[answer]),
                         verifier=str(row[verifier]) if "verifier" in columns else verifier,
                         meta={column: row[column] for column in meta})
