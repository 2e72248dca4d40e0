r"""NuminaMath 1.5, 896,215 problems from school to olympiads, and NuminaMath-CoT, 859,494.

Li et al. 2024, "NuminaMath"; `hf:AI-MO/NuminaMath-1.5`, which has no test split, and
`hf:AI-MO/NuminaMath-CoT`, where the answer is in the last \boxed{} of the solution.

The card of 1.5 has "proof" or "notfound" as the answer of rows without one (110,998 proofs), and
problems and solutions that are marked as not valid: all of them are dropped.
"""
from rlx.prompts.datasets import _published

SETS = {"numina_math": ("hf:AI-MO/NuminaMath-1.5", "train[512:]", "train[:512]"),
        "numina_math_cot": ("hf:AI-MO/NuminaMath-CoT", "train", "test")}


def prompts(rows, split, *, verifier="math_answer.boxed"):
  """Rows with "problem", "source", and "answer" or "solution"."""
  def read(row, where):
    if any(row.get(key, "Yes") != "Yes" for key in ("problem_is_valid", "solution_is_valid")):
      return "marked as not valid"
    is_solution = "answer" not in row
    return _published.read_problem(
        row, where, answer="solution" if is_solution else "answer", is_solution=is_solution,
        verifier=verifier, meta=("problem_type", "source"))
  return _published.make_prompts("numina_math", rows, split, read)
