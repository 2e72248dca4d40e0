"""TACO, problems of programming contests: 25,443 for training, 1,000 for testing.

Li et al. 2023, arXiv:2312.14852; the Parquet files of `hf:BAAI/TACO`, whose script the package
`datasets` no longer runs (version 4). Most problems ask for a program, some for a function.
"""
import json

from rlx.prompts import columns as columns_lib
from rlx.prompts.datasets import _published

SETS = {"taco": ("hf:BAAI/TACO/ALL/{split}-*.parquet", "train", "test")}


def prompts(rows, split, *, verifier="code_tests.passed", tests: _published.Most = 16):
  """Rows with "question", "starter_code", "difficulty", and the JSON texts "input_output" and
  "solutions"."""
  def read(row, where):
    starter, given, solutions = (columns_lib.find(row, name, where) for name in (
        "starter_code", "input_output", "solutions"))
    return _published.read_program(
        row, where, _published.read_tests(given, tests), question="question",
        verifier=verifier, starter_code=starter or "",
        answer=next(iter(json.loads(solutions or "[]")), ""), meta=("difficulty", "source"))
  return _published.make_prompts("taco", rows, split, read)
