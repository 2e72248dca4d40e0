"""Test sets of mathematics: MATH-500, the AIME of 2024 and 2025, and the AMC 12 of 2022 and 2023.

  math_500  500 of the 5,000 test problems of MATH; Lightman et al. 2023, arXiv:2305.20050
  aime24    30 problems, `hf:HuggingFaceH4/aime_2024`
  aime25    30 problems, `hf:math-ai/aime25`
  amc       83 problems with numbers as answers, `hf:AI-MO/aimo-validation-amc`

None has a training split. Answers of the AIME are whole numbers from 0 to 999, written with three
digits in some rows.
"""
from rlx.prompts.datasets import _published

SETS = {"math_500": ("hf:HuggingFaceH4/MATH-500", "", "test"),
        "aime24": ("hf:HuggingFaceH4/aime_2024", "", "train"),
        "aime25": ("hf:math-ai/aime25", "", "test"),
        "amc": ("hf:AI-MO/aimo-validation-amc", "", "train")}


def prompts(rows, split, *, verifier="math_answer.final"):
  """Rows with "problem" and "answer", a text or a number."""
  return _published.make_prompts("competition_math", rows, split, lambda row, where: (
      _published.read_problem(row, where, verifier=verifier, meta=("level", "subject"))))
