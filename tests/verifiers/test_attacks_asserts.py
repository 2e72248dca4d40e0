"""Solutions that attack the asserts of code_tests earn 0; tests in common forms are usable."""
import collections
import itertools
import json
import pathlib
import re
import time
import types

import pytest

from rlx.verifiers import _sandbox
from rlx.verifiers import code_tests
from tests.verifiers import attacks_asserts
from tests.verifiers import sandbox

ATTACKS = {f"{family}-{name}": source for family, attacks in attacks_asserts.FAMILIES.items()
           for name, source in attacks.items()}
FORMS = [json.loads(line) for line in
         pathlib.Path(__file__).with_name("code_forms.jsonl").read_text().splitlines()]


def prompt(tests, total_s=30.0, **meta):
  return types.SimpleNamespace(meta=dict(meta, tests=tests, code=dict(
      unsafe=False, test_s=1, test_mb=512, total_s=total_s)))


@sandbox.needed
@pytest.mark.parametrize("i, name", list(enumerate(ATTACKS)), ids=ATTACKS)
def test_no_attack_passes_a_test(i, name, request):
  """Each one test, all of them with `--soak`."""
  tests = attacks_asserts.TESTS
  if not request.config.getoption("--soak"): tests = [tests[i % len(tests)]]
  for test in tests:
    start = time.monotonic()
    assert code_tests.fraction(prompt([test]), attacks_asserts.BEFORE + ATTACKS[name]) == 0.0
    assert time.monotonic() - start < 15


@sandbox.needed
def test_what_is_attacked_can_be_passed():
  found = prompt(list(attacks_asserts.TESTS), total_s=120.0)
  assert code_tests.constant(prompt(list(attacks_asserts.TESTS[:1]))) is None
  assert code_tests.passed(found, attacks_asserts.BEFORE + attacks_asserts.RIGHT) == 1.0


@sandbox.needed
@pytest.mark.parametrize("name", attacks_asserts.FORGED)
def test_nothing_is_forged(name):
  *tests, solution = attacks_asserts.FORGED[name]
  code_tests.check(prompt(tests))
  assert code_tests.passed(prompt(tests), attacks_asserts.BEFORE + solution) == 0.0


@pytest.mark.parametrize("test", attacks_asserts.REFUSED)
def test_a_test_that_hands_over_what_is_expected_is_refused(test):
  with pytest.raises(ValueError, match=r"^tests\[1\] is "):
    code_tests.check(prompt(["assert f(1) == 1", test]))


@pytest.mark.parametrize("tests", attacks_asserts.CONSTANT)
def test_a_prompt_that_a_constant_passes_is_found(tests):
  assert code_tests.constant(prompt(list(tests))) is not None


# Everything that can be reached from inside: objects, frames, code, files, arguments.
INVENTORY = """
import gc, os, sys
def f(x, y=None):
  found, todo, seen = [], [*gc.get_objects(), sys.argv, sys.orig_argv, dict(os.environ)], set()
  frame = sys._getframe()
  while frame: todo += [frame.f_locals, frame.f_globals, frame.f_code]; frame = frame.f_back
  while todo:
    v = todo.pop()
    if id(v) in seen: continue
    seen.add(id(v))
    if isinstance(v, (str, bytes)): found.append(str(v))
    else: todo += gc.get_referents(v)
  for fd in range(64):
    try: found.append(os.pread(fd, 2**20, 0).decode(errors='replace'))
    except OSError: pass
  whole = {t[i:i + 12] for t in found for i in range(len(t)) if t.startswith('CANA' + 'RY-', i)}
  return sorted(t for t in whole if len(t) == 12)
"""


@sandbox.needed
def test_inside_are_the_solution_and_one_call_with_its_arguments(monkeypatch):
  printed, run = [], _sandbox.run
  monkeypatch.setattr(_sandbox, "run", lambda *a, **k: printed.append(run(*a, **k)) or printed[-1])
  tests = ["NAME = 'CANARY-00001'\nassert f('CANARY-00002') == 'CANARY-00003', 'CANARY-00004'",
           "def check(candidate):\n  'CANARY-00005'\n  assert candidate(1, y=['CANARY-00006'])[0] == 'CANARY-00007'",
           "assert abs(f(0) - len('CANARY-00008')) < 1 or 'CANARY-00009' in f(2)"]
  assert code_tests.fraction(prompt(tests, entry_point="f"), INVENTORY) == 0.0
  found = [sorted(re.findall(r"CANARY-\d+", p.decode())) for p in printed]
  assert found == [["CANARY-00002"], ["CANARY-00006"], []]


def test_most_tests_of_common_forms_are_usable():
  usable, constant = collections.Counter(), []
  for row in FORMS:
    found = prompt(row["tests"], **{k: row[k] for k in ("entry_point", "test_setup_code") if k in row})
    try:
      code_tests.check(found)
      if code_tests.constant(found): constant.append(row)
      usable[row["family"]] += 1
      assert row["usable"], row
    except ValueError:
      assert not row["usable"], row
  assert len(FORMS) == 300 and usable.keys() == {"mbpp", "humaneval", "solution", "stdin"}
  assert usable.total() >= 0.95 * len(FORMS) and not constant


@sandbox.needed
def test_right_solutions_of_common_forms_pass_and_wrong_ones_fail(request):
  """Two of each family, all of them with `--soak`."""
  rows = [row for row in FORMS if row["usable"]]
  if not request.config.getoption("--soak"):
    families = itertools.groupby(rows, lambda row: row["family"])
    rows = [row for _, of in families for row in list(of)[::30][:2]]
  for row in rows:
    found = prompt(row["tests"], **{k: row[k] for k in ("entry_point", "test_setup_code") if k in row})
    verdicts = [code_tests.passed(found, row[name]) for name in ("right", "wrong")]
    assert verdicts == [1.0, 0.0], row


def test_no_call_is_made_that_was_not_foreseen():
  """Even if it escaped the check that no argument depends on a result."""
  run, asked = lambda call: asked.append(call) or b"true", []
  body, calls, own = code_tests._tests(prompt(["assert f(1)"]))[0]
  assert code_tests._holds(run, body, calls, own) and asked == ["f(1)"]
  assert not code_tests._holds(run, body, {"f": {"f(2)"}}, own) and asked == ["f(1)"]
