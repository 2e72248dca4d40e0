"""The rows given to `rlx.train`, which rlx/api.py writes into the folder of the run."""
from rlx.core import records


def prompts(rows, split, *, verifier=""):
  """Rows {"id", "split", "columns"} -> Prompts.

  The meta of a prompt has the columns of its row, and a copy of them under the key `row`.

  Args:
    verifier: the verifier of all rows; "": each row names its own in the column `verifier`.
  """
  del split
  for row in rows:
    columns = row["columns"]
    answer = columns.get("answer")
    yield records.Prompt(
        id=row["id"], text=columns["prompt"], answer="" if answer is None else str(answer),
        verifier=verifier or columns["verifier"], meta=columns | dict(row=columns))
