"""Solutions that attack the asserts of code_tests earn 0; tests in common forms are usable."""
import collections
import re
import time

import pytest

from rlx.verifiers import _sandbox
from rlx.verifiers import code_tests
from tests.verifiers import cases
from tests.verifiers import sandbox

CASES = cases.read("attacks_asserts.toml")
FAMILIES = cases.families("attacks_asserts.toml")
FORMS = cases.read("code_forms.jsonl")


@sandbox.needed
@pytest.mark.parametrize("family", FAMILIES)
def test_no_attack_passes_a_test(family, request):
  """Each one test, all of them with `--soak`."""
  def check(attack):
    i, (name, source) = attack
    tests = CASES["tests"]
    if not request.config.getoption("--soak"): tests = [tests[i % len(tests)]]
    for test in tests:
      start = time.monotonic()
      assert code_tests.fraction(sandbox.prompt([test]), CASES["before"] + source) == 0.0, name
      assert time.monotonic() - start < 15, name

  sandbox.at_once(check, list(enumerate(FAMILIES[family].items())))


@sandbox.needed
def test_what_is_attacked_can_be_passed():
  assert code_tests.constant(sandbox.prompt(CASES["tests"][:1])) is None
  prompt = sandbox.prompt(CASES["tests"], total_s=120.0)
  assert code_tests.passed(prompt, CASES["before"] + CASES["right"]) == 1.0


@sandbox.needed
def test_nothing_is_forged():
  def check(name):
    *tests, solution = CASES["forged"][name]
    code_tests.check(sandbox.prompt(tests))
    assert code_tests.passed(sandbox.prompt(tests), CASES["before"] + solution) == 0.0, name

  sandbox.at_once(check, CASES["forged"])


@pytest.mark.parametrize("test", CASES["refused"])
def test_a_test_that_hands_over_what_is_expected_is_refused(test):
  with pytest.raises(ValueError, match=r"^tests\[1\] is "):
    code_tests.check(sandbox.prompt(["assert f(1) == 1", test]))


@pytest.mark.parametrize("tests", CASES["constant"])
def test_a_prompt_that_a_constant_passes_is_found(tests):
  assert code_tests.constant(sandbox.prompt(tests)) is not None


# Everything that can be reached from inside: objects, frames, code, files, arguments.
INVENTORY = """
import gc, os, sys
def f(x, y=None):
  texts, todo, seen = [], [*gc.get_objects(), sys.argv, sys.orig_argv, dict(os.environ)], set()
  frame = sys._getframe()
  while frame: todo += [frame.f_locals, frame.f_globals, frame.f_code]; frame = frame.f_back
  while todo:
    v = todo.pop()
    if id(v) in seen: continue
    seen.add(id(v))
    if isinstance(v, (str, bytes)): texts.append(str(v))
    else: todo += gc.get_referents(v)
  for fd in range(64):
    try: texts.append(os.pread(fd, 2**20, 0).decode(errors='replace'))
    except OSError: pass
  whole = {t[i:i + 12] for t in texts for i in range(len(t)) if t.startswith('CANA' + 'RY-', i)}
  return sorted(t for t in whole if len(t) == 12)
"""


@sandbox.needed
def test_inside_are_the_solution_and_one_call_with_its_arguments(monkeypatch):
  printed, run = [], _sandbox.run
  monkeypatch.setattr(_sandbox, "run", lambda *a, **k: printed.append(run(*a, **k)) or printed[-1])
  tests = ["NAME = 'CANARY-00001'\nassert f('CANARY-00002') == 'CANARY-00003', 'CANARY-00004'",
           "def check(candidate):\n  'CANARY-00005'\n"
           "  assert candidate(1, y=['CANARY-00006'])[0] == 'CANARY-00007'",
           "assert abs(f(0) - len('CANARY-00008')) < 1 or 'CANARY-00009' in f(2)"]
  prompt = sandbox.prompt(tests, meta=dict(entry_point="f"))
  assert code_tests.fraction(prompt, INVENTORY) == 0.0
  reached = [sorted(re.findall(r"CANARY-\d+", p.decode())) for p in printed]
  assert reached == [["CANARY-00002"], ["CANARY-00006"], []]


def of_row(row):
  """The prompt of a row of code_forms.jsonl."""
  keys = row.keys() & {"entry_point", "test_setup_code"}
  return sandbox.prompt(row["tests"], meta={k: row[k] for k in keys})


def test_most_tests_of_common_forms_are_usable():
  usable = collections.Counter()
  for row in FORMS:
    prompt = of_row(row)
    if row["usable"]:
      code_tests.check(prompt)
      assert not code_tests.constant(prompt), row
      usable[row["family"]] += 1
    else:
      with pytest.raises(ValueError): code_tests.check(prompt)
  assert len(FORMS) == 300 and usable.keys() == {"mbpp", "humaneval", "solution", "stdin"}
  assert usable.total() >= 0.95 * len(FORMS)


@sandbox.needed
@pytest.mark.parametrize("family", ["mbpp", "humaneval", "solution", "stdin"])
def test_right_solutions_of_common_forms_pass_and_wrong_ones_fail(family, request):
  """Two of each family, all of them with `--soak`."""
  rows = [row for row in FORMS if row["usable"] and row["family"] == family]
  if not request.config.getoption("--soak"): rows = rows[:31:30]
  def check(row):
    verdicts = [code_tests.passed(of_row(row), row[name]) for name in ("right", "wrong")]
    assert verdicts == [1.0, 0.0], row

  sandbox.at_once(check, rows)


def test_no_call_is_made_that_was_not_foreseen():
  """Even if it escaped the check that no argument depends on a result."""
  run, asked = lambda call: asked.append(call) or b"true", []
  body, calls, own = code_tests._tests(sandbox.prompt(["assert f(1)"]))[0]
  assert code_tests._holds(run, body, calls, own) and asked == ["f(1)"]
  assert not code_tests._holds(run, body, {"f": {"f(2)"}}, own) and asked == ["f(1)"]
