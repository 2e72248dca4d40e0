r"""MATH, competition problems: 7,500 for training, 5,000 for testing.

Hendrycks et al. 2021, arXiv:2103.03874; `hf:DigitalLearningGmbH/MATH-lighteval`, as verl reads it
(examples/data_preprocess/math_dataset.py). The answer is in the last \boxed{...} of the worked
solution, or in the last ones where only words such as "or" stand between them.
"""
from rlx.prompts.datasets import _published

SETS = {"math": ("hf:DigitalLearningGmbH/MATH-lighteval", "train", "test")}


def prompts(rows, split, *, verifier="math_answer.boxed"):
  """Rows with "problem", "solution", "level" and "type"; the last two go into `meta`."""
  return _published.make_prompts("hendrycks_math", rows, split, lambda row, where: (
      _published.read_problem(row, where, answer="solution", is_solution=True,
                              verifier=verifier, meta=("level", "type"))))
