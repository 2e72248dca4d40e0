"""GSM8K, grade-school word problems: `hf:openai/gsm8k:main` or `tfds:gsm8k`.

Cobbe et al. 2021, arXiv:2110.14168.
"""
from rlx.core import records


def prompts(rows, split, *, verifier="math_answer.final"):
  """Rows with "question" and a worked "answer" that ends in `#### <number>`."""
  for i, row in enumerate(rows):
    worked, mark, answer = row["answer"].rpartition("####")
    if not mark:
      raise ValueError(f"gsm8k: row {i} of {split} has no '####' in its answer.")
    yield records.Prompt(
        id=f"gsm8k/{split}/{i}", text=row["question"],
        answer=answer.strip().replace(",", ""), verifier=verifier, meta=dict(worked=worked.strip()))


def demonstration(prompt, rng):
  r"""The worked solution of a row, with the answer in \boxed{}."""
  del rng
  return f"{prompt.meta['worked']}\n\\boxed{{{prompt.answer}}}"
