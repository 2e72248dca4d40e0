r"""Eurus-2-RL-Data, the data of PRIME: 455,261 mathematical and 26,758 programming problems.

Cui et al. 2025, arXiv:2502.01456; `hf:PRIME-RL/Eurus-2-RL-Data`, held out: 2,048 of `validation`.
Prompts are chat messages with the system turn of the paper's models, and ask for \boxed{} or for
a block of Python. The reference of a program is the JSON text of its tests.
"""
from rlx.prompts import columns as columns_lib
from rlx.prompts.datasets import _published

SETS = {"eurus_2_rl": ("hf:PRIME-RL/Eurus-2-RL-Data", "train", "validation")}


def prompts(rows, split, *, math="math_answer.boxed", code="code_tests.passed",
            tests: _published.Most = 16):
  """Rows with "prompt", "ability", "data_source" and "reward_model.ground_truth".

  Args:
    math, code: verifiers of the two abilities. tests: how many of a program are kept.
  """
  def read(row, where):
    meta, answer = ("ability", "data_source"), "reward_model.ground_truth"
    if columns_lib.find(row, "ability", where) == "math":
      return _published.read_problem(row, where, question="prompt", answer=answer, verifier=math,
                                     meta=meta)
    kept = _published.read_tests(columns_lib.find(row, answer, where), tests)
    return _published.read_program(row, where, kept, question="prompt", verifier=code, meta=meta)
  return _published.make_prompts("eurus_2_rl", rows, split, read)
