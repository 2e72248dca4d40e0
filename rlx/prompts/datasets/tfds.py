"""Any tensorflow-datasets set with a question and an answer in text columns."""
from rlx.prompts.datasets import _columns

SOURCE = "tfds:NAME"


def prompts(rows, split, *, question="question", answer="answer",
            verifier="math_answer.final"):
  """Rows -> Prompts.

  Args:
    question, answer: columns.
    verifier: a verifier (<module>.<function>), or the column that names it.
  """
  return _columns.prompts("tfds", rows, split, question=question, answer=answer,
                          verifier=verifier)
