"""GSM8K, grade-school word problems (Cobbe et al. 2021, arXiv:2110.14168): `tfds:gsm8k`."""
from rlx.core import records
from rlx.prompts import columns as columns_lib


def prompts(rows, split, *, verifier="math_answer.final"):
  """Rows with "question" and a worked "answer" that ends in `#### <number>`."""
  for i, row in enumerate(rows):
    question, answer = (columns_lib.find(row, name, f"gsm8k: row {i} of {split}")
                        for name in ("question", "answer"))
    worked, mark, answer = answer.rpartition("####")
    if not mark:
      raise ValueError(f"gsm8k: row {i} of {split} has no '####' in its answer.")
    yield records.Prompt(
        id=f"gsm8k/{split}/{i}", text=question,
        answer=answer.strip().replace(",", ""), verifier=verifier, meta=dict(worked=worked.strip()))
