"""CodeContests, problems of programming contests: 13,328 for training, 165 for testing.

Li et al. 2022, arXiv:2203.07814; `hf:deepmind/code_contests`, which also has 117 for validation.
"""
import itertools

from rlx.prompts import columns as columns_lib
from rlx.prompts.datasets import _published

SETS = {"code_contests": ("hf:deepmind/code_contests", "train", "test")}
_KINDS = ("public_tests", "private_tests", "generated_tests")
_PYTHON = 3  # Of solutions.language; 1 is Python 2.


def prompts(rows, split, *, verifier="code_tests.passed", tests: _published.Most = 16):
  """Rows with "description", three columns of tests {"input", "output"}, and "solutions"
  {"language", "solution"}, lists of the same length."""
  def read(row, where):
    if row.get("input_file") or row.get("output_file"): return "that read or write files"
    given = {f"{name}s": list(itertools.chain.from_iterable(
        columns_lib.find(row, f"{kind}.{name}", where) for kind in _KINDS))
             for name in ("input", "output")}
    solutions = columns_lib.find(row, "solutions", where)
    return _published.read_program(
        row, where, _published.read_tests(given, tests), question="description", verifier=verifier,
        answer=next((code for language, code in zip(solutions["language"], solutions["solution"])
                     if language == _PYTHON), ""), meta=("difficulty", "source"))
  return _published.make_prompts("code_contests", rows, split, read)
