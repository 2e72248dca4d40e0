"""Any data set of tensorflow-datasets, `tfds:NAME`, with text columns question and answer."""
from rlx.prompts.datasets import _columns


def prompts(rows, split, *, question="question", answer="answer",
            verifier="math_answer.final", meta=()):
  """Rows -> Prompts.

  Args:
    question, answer: columns.
    verifier: a verifier (<module>.<function>), or the column that names it.
    meta: columns that are copied to the prompts' meta, such as the difficulty.
  """
  return _columns.prompts("tfds", rows, split, question=question, answer=answer,
                          verifier=verifier, meta=meta)
