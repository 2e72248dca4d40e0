"""HumanEval, 164 Python functions to complete; it has no training split.

Chen et al. 2021, arXiv:2107.03374; `hf:openai/openai_humaneval`. The question is the function's
head with its docstring; a completion may be its body or the whole function.
"""
from rlx.prompts import columns as columns_lib
from rlx.prompts.datasets import _published

SETS = {"humaneval": ("hf:openai/openai_humaneval", "", "test")}


def prompts(rows, split, *, verifier="code_tests.passed"):
  """Rows with "prompt", "canonical_solution", "test" and "entry_point"."""
  def read(row, where):
    head, body, test, name = (columns_lib.find(row, column, where) for column in (
        "prompt", "canonical_solution", "test", "entry_point"))
    if columns_lib.is_missing(test): return "without tests"
    made = dict(text=head, answer=head + body, verifier=verifier,
                meta=dict(tests=test, entry_point=name))
    return made | (dict(id=f"humaneval/{split}/{row['task_id']}") if "task_id" in row else {})
  return _published.make_prompts("humaneval", rows, split, read)
