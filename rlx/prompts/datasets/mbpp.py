"""MBPP, short Python functions: 374 for training, 500 for testing, 90 for validation.

Austin et al. 2021, arXiv:2108.07732; `hf:google-research-datasets/mbpp:full`. The question ends
with the tests, which name the function; so did the paper's.
"""
from rlx.prompts import columns as columns_lib
from rlx.prompts.datasets import _published

SETS = {"mbpp": ("hf:google-research-datasets/mbpp:full", "train", "test")}


def prompts(rows, split, *, verifier="code_tests.passed"):
  """Rows with "text", "code", "test_list" and "test_setup_code" -> Prompts."""
  def read(row, where):
    asked, code, tests, setup = (columns_lib.find(row, name, where) for name in (
        "text", "code", "test_list", "test_setup_code"))
    if not tests: return "without tests"
    text = "\n".join([asked, "Your code should pass these tests:", "", *tests])
    made = dict(text=text, answer=code, verifier=verifier,
                meta=dict(tests=list(tests), test_setup_code=setup))
    return made | (dict(id=f"mbpp/{split}/{row['task_id']}") if "task_id" in row else {})
  return _published.make_prompts("mbpp", rows, split, read)
