"""MBPP, short Python functions: `hf:google-research-datasets/mbpp:full`.

Austin et al. 2021, arXiv:2108.07732.

The question ends with the tests, which name the function; so did the paper's.
"""
from rlx.core import records


def prompts(rows, split, *, verifier="code_tests.passed"):
  """Rows with "text", "code", "test_list" and "test_setup_code" -> Prompts."""
  for i, row in enumerate(rows):
    tests = list(row["test_list"])
    text = "\n".join([row["text"], "Your code should pass these tests:", "", *tests])
    yield records.Prompt(
        id=f"mbpp/{split}/{row.get('task_id', i)}", text=text, answer=row["code"],
        verifier=verifier, meta=dict(tests=tests, test_setup_code=row["test_setup_code"]))
