"""Any JSONL file of questions and answers."""
from rlx.prompts.datasets import _columns

SOURCE = "jsonl:PATH"  # {split} in PATH, or a "split" in every row.


def prompts(rows, split, *, question="question", answer="answer",
            verifier="math_answer.final"):
  """Rows -> Prompts.

  Args:
    question, answer: columns.
    verifier: a verifier (<module>.<function>), or the column that names it.
  """
  return _columns.prompts("jsonl", rows, split, question=question, answer=answer,
                          verifier=verifier)


def demonstration(prompt, rng):
  """The text that supervised training learns: the answer column."""
  del rng
  return prompt.answer
