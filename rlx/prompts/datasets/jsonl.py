r"""Any JSONL file of questions and answers: `jsonl:PATH`, {split} in PATH or "split" in all rows.

A row with tests, for `verifier="code_tests.passed", meta=("tests",)`; its answer is a
reference solution:

  {"question": "Write add(a, b). As a program, add the two numbers of a line.",
   "answer":
   "def add(a, b): return a + b\nif __name__ == '__main__': print(add(*map(int, input().split())))",
   "tests": ["assert add(1, 2) == 3", {"input": "1 2\n", "output": "3\n"}]}

verifiers/code_tests.py describes tests and the columns test_setup_code and entry_point.
"""
import functools

from rlx.prompts.datasets import _columns

prompts = functools.partial(_columns.prompts, "jsonl")


def demonstration(prompt, rng, *, column=""):
  """The target of supervised training: the answer, or the text in a column of prompts.columns.meta.

  Raises:
    ValueError: a row has no text there.
  """
  del rng
  if not column: return prompt.answer
  if isinstance(text := prompt.meta.get(column), str): return text
  raise ValueError(f"{prompt.id}: column {column!r}: {text!r:.60} is no text; with "
                   f"prompts.columns.meta=({column!r},) each row has its demonstration there.")
