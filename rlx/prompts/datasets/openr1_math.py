"""OpenR1-Math-220k, problems of NuminaMath 1.5 that DeepSeek-R1 solved: 93,733 in `default`.

Hugging Face 2025, "Open R1: Update #2"; `hf:open-r1/OpenR1-Math-220k:default`, also `:extended` and
`:all`. It has no test split. The columns with the model's solutions, such as "generations" and
"correctness_math_verify", are not read.
"""
from rlx.prompts.datasets import _published

SETS = {"openr1_math": ("hf:open-r1/OpenR1-Math-220k:default", "train[512:]", "train[:512]")}


def prompts(rows, split, *, verifier="math_answer.boxed"):
  """Rows with "problem", "answer", "problem_type", "question_type" and "source"."""
  return _published.make_prompts("openr1_math", rows, split, lambda row, where: (
      _published.read_problem(row, where, verifier=verifier, meta=("problem_type", "source"))))
