"""The rows given to `rlx.train`, which rlx/build/own_data.py writes into the folder of the run."""
import dataclasses

from rlx.core import records
from rlx.prompts import columns as columns_lib


def prompts(rows, split, *, verifier="", max_tokens=None):
  """Rows {"id", "split", "columns"} -> Prompts.

  The meta of a prompt has the columns of its row, and a copy of them under the key `row`.

  Args:
    verifier: the reward function of all rows, which reads the columns as they are; "": each row
      names a verifier in the column `verifier`, which compares with the column `answer`. With an
      environment that gives the reward it needs none.
    max_tokens: column of the most tokens of a completion.
  """
  del split
  for row in rows:
    limit = None if not max_tokens else columns_lib.read_limit(
        columns_lib.find(row["columns"], max_tokens, row["id"], "prompts.columns.max_tokens"),
        f"{row['id']}: column {max_tokens!r}")
    yield dataclasses.replace(
        read_row(row["columns"], row["id"], verifier), max_tokens=limit)


def read_row(columns: dict, name: str, verifier: str) -> records.Prompt:
  """The Prompt of the columns of a row; see `prompts`.

  Raises:
    ValueError: a column cannot be read, or there is none; one line with the name of the row.
  """
  if "prompt" not in columns:
    raise ValueError(f"{name}: no column `prompt`; it has {sorted(columns)}: name the one that is "
                     'asked, as in columns={"prompt": "question"}, or columns.prompt=question on '
                     "the command line.")
  text, messages = columns_lib.read_question(columns["prompt"], f"{name}: column 'prompt'")
  answers: tuple[str, ...] = ("",)
  if "answer" in columns:
    try:
      answers = columns_lib.read_answers(columns["answer"], f"{name}: column 'answer'")
    except ValueError:
      if not verifier: raise
  return records.Prompt(
      id=name, text=text, messages=messages, answer=answers[0],
      answers=answers if len(answers) > 1 else (), verifier=verifier or columns.get("verifier", ""),
      meta=columns | dict(row=columns),
      tools=columns_lib.read_tools(columns.get("tools"), f"{name}: column 'tools'"))
