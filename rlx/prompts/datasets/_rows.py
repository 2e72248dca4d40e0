"""The rows given to `rlx.train`, which rlx/api.py writes into the folder of the run."""
from rlx.core import records


def prompts(rows, split, *, verifier=""):
  """Rows {"id", "split", "columns"} -> Prompts. Their meta is the columns, and in `row` the columns alone.

  Args:
    verifier: of all rows; "" is what each row has in its column `verifier`.
  """
  del split
  for row in rows:
    columns = row["columns"]
    answer = columns.get("answer")
    yield records.Prompt(
        id=row["id"], text=columns["prompt"], answer="" if answer is None else str(answer),
        verifier=verifier or columns["verifier"], meta=columns | dict(row=columns))
