"""GSM8K, grade-school word problems: `hf:openai/gsm8k:main` or `tfds:gsm8k`.

Cobbe et al. 2021, arXiv:2110.14168.
"""
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


def demonstration(prompt, rng):
  r"""The worked solution of a row, with the answer in \boxed{}."""
  del rng
  return f"{prompt.meta['worked']}\n\\boxed{{{prompt.answer}}}"
