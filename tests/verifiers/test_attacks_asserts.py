"""Solutions that attack the asserts of code_tests earn 0; tests in common forms are usable."""
import collections
import time

import pytest

from rlx.verifiers import code_tests
from tests.verifiers import cases, sandbox

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
      assert time.monotonic() - start < 60, name

  sandbox.at_once(check, list(enumerate(FAMILIES[family].items())))


@sandbox.needed
def test_what_is_attacked_can_be_passed():
  assert code_tests.inspect([sandbox.prompt(CASES["tests"][:1])]) == [(None, None)]
  prompt = sandbox.prompt(CASES["tests"], test_s=10, total_s=120.0)
  assert code_tests.passed(prompt, CASES["before"] + CASES["right"]) == 1.0


@sandbox.needed
def test_nothing_is_forged():
  programs = {f"program_{name}": (*[dict(zip(("input", "output"), test)) for test in tests], source)
              for name, (tests, source) in CASES["forged_programs"].items()}
  forged = CASES["forged"] | programs
  prompts = {name: sandbox.prompt(tests) for name, (*tests, _) in forged.items()}
  assert [problem for problem, _ in code_tests.inspect(prompts.values())] == [None] * len(prompts)
  def check(name):
    solution = CASES["before"] + forged[name][-1]
    assert code_tests.passed(prompts[name], solution) == 0.0, name

  sandbox.at_once(check, prompts)


@sandbox.needed
def test_a_test_that_hands_over_what_is_expected_is_refused():
  problems = code_tests.inspect([sandbox.prompt([test]) for test in CASES["refused"]])
  assert all(problem for problem, _ in problems), [
      test for test, (problem, _) in zip(CASES["refused"], problems) if not problem]


@sandbox.needed
def test_what_looks_like_handing_over_is_not():
  """The solution is asked for values alone: one that agrees with everything earns nothing."""
  problems = code_tests.inspect([sandbox.prompt([test]) for test in CASES["computed"]])
  assert all(problem is None for problem, _ in problems), problems
  prompt = sandbox.prompt(CASES["computed"], test_s=2, total_s=60.0)
  assert code_tests.fraction(prompt, CASES["before"] + CASES["agrees"]) == 0.0


@sandbox.needed
def test_a_prompt_that_a_constant_passes_is_found():
  prompts = [sandbox.prompt(tests) for tests in CASES["constant"]]
  for tests, (_, constant) in zip(CASES["constant"], code_tests.inspect(prompts)):
    assert constant is not None, tests


@sandbox.needed
def test_inside_are_the_solution_and_one_call_with_its_arguments():
  tests = ["NAME = 'CANARY-00001'\nassert f('CANARY-00002') == ['00002'], 'CANARY-00004'",
           "def check(candidate):\n  'CANARY-00005'\n"
           "  assert candidate(1, y=['CANARY-00006']) == ['00006']",
           "assert f('CANARY-00007') and f(0) == [] or 'CANARY-00008' in f(2)"]
  prompt = sandbox.prompt(tests, meta=dict(entry_point="f"), test_s=10, total_s=60.0)
  assert code_tests.fraction(prompt, CASES["inventory"]) == 1.0


def of_row(row):
  """Returns the prompt of a row of code_forms.jsonl."""
  keys = row.keys() & {"entry_point", "test_setup_code"}
  return sandbox.prompt(row["tests"], meta={k: row[k] for k in keys}, test_s=10, total_s=60.0)


@sandbox.needed
def test_most_tests_of_common_forms_are_usable():
  usable = collections.Counter()
  for row, (problem, constant) in zip(FORMS, code_tests.inspect([of_row(row) for row in FORMS])):
    assert (problem is None and constant is None) == row["usable"], (row, problem, constant)
    usable[row["family"]] += row["usable"]
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
