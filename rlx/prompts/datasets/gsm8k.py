"""GSM8K, grade-school word problems: 7,473 for training, 1,319 for testing.

Cobbe et al. 2021, arXiv:2110.14168; `hf:openai/gsm8k:main`, or `tfds:gsm8k` with the same columns.
"""
from rlx.prompts import columns as columns_lib
from rlx.prompts.datasets import _published

SETS = {"gsm8k": ("hf:openai/gsm8k:main", "train", "test")}


def prompts(rows, split, *, verifier="math_answer.final"):
  """Rows with "question" and a worked "answer" that ends in `#### <number>`."""
  def read(row, where):
    question, worked = (columns_lib.find(row, name, where) for name in ("question", "answer"))
    worked, mark, answer = worked.rpartition("####")
    if not mark: return "without ####"
    return dict(text=question, answer=answer.strip().replace(",", ""), verifier=verifier,
                meta=dict(worked=worked.strip()))
  return _published.make_prompts("gsm8k", rows, split, read)


def demonstration(prompt, rng):
  r"""The worked solution of a row, with the answer in \boxed{}."""
  del rng
  return f"{prompt.meta['worked']}\n\\boxed{{{prompt.answer}}}"
