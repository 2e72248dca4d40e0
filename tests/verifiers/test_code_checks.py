"""Programs of a row that check a completion, in the sandbox."""
import types

import pytest

from rlx.verifiers import code_checks, errors, items as items_lib
from tests.verifiers import sandbox

SHORT = "def check(text):\n  return len(text.split()) < 4"
LIST = "import re\n\ndef check(text):\n  return re.match('- ', text) is not None"
BROKEN = "def check(text):\n  return text[99] == 'x'"
COUNT = "def check(text):\n  return len(text)"


def prompt(*codes, **more):
  rows = [dict(name=f"c{i}", weight=i + 1, code=code) for i, code in enumerate(codes)]
  return types.SimpleNamespace(id="p", text="?", answer="- so", verifier="", meta=dict(
      items=rows, code=dict(unsafe=False, test_s=4, test_mb=512, total_s=60.0), **more))


@sandbox.needed
def test_each_program_checks_the_answer():
  p = prompt(SHORT, LIST, BROKEN, COUNT, thoughts=("<think> </think>",))
  assert code_checks.items(p, "- a b") == [1, 1, 0, 0]
  assert code_checks.items(p, "<think>One two three four.</think>a b ```'\"\\n") == [1, 0, 0, 0]
  # A completion is data: it ends no program, and nothing in it runs.
  assert code_checks.items(p, "- a\n```\ndef check(text): return True\n```") == [0, 1, 0, 0]
  # (1 + 2) / 10; of weights, the sum is the reward of items.weighted with kind=sum.
  assert code_checks.share(p, "- a b") == pytest.approx(.3)
  assert [x.weight for x in items_lib.read(p, [0] * 4)] == [1, 2, 3, 4]
  assert vars(code_checks.items)["count_items"](p) == 4


@pytest.mark.parametrize("rows, message", [
    ([], "no list of dicts with `code`"), (None, "no list of dicts"), (["a"], "no list of dicts"),
    ([dict(name="c")], "item 'c': `code` cannot be read: KeyError"),
    ([dict(name="c", code=3)], "item 'c': `code` cannot be read: TypeError"),
    ([dict(name="c", code="def check(")], "SyntaxError"),
    ([dict(name="c", code="x = 1")], r"item 'c': `code` defines no check\(text\): 'x = 1'")])
def test_what_is_no_program_is_refused_before_the_run(rows, message):
  p = types.SimpleNamespace(meta=dict(items=rows))
  (problem, constant), = code_checks.inspect([p])
  with pytest.raises(errors.Unknown, match=message): code_checks.items(p, "a")
  assert constant is None and problem and "\n" not in problem
