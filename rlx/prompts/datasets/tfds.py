"""Any tensorflow-datasets set with a question and an answer in text columns."""
from rlx.prompts.datasets import _columns

SOURCE = "tfds:NAME"


def prompts(rows, split, *, question="question", answer="answer",
            verifier="math_answer.final", meta=()):
  """Rows -> Prompts.

  Args:
    question, answer: columns.
    verifier: a verifier (<module>.<function>), or the column that names it.
    meta: columns that go into the prompts' meta, such as how hard they are.
  """
  return _columns.prompts("tfds", rows, split, question=question, answer=answer,
                          verifier=verifier, meta=meta)
