"""Tests that are Python: what they may do, what is refused, and that they end."""
import json
import math
import time
import types

import ml_collections
import pytest

from rlx.build import verifiers as build_verifiers
from rlx.core import records
from rlx.prompts.datasets import jsonl
from rlx.verifiers import _test_forms, code_tests
from rlx.verifiers.sandbox import inside, sandbox as sandbox_lib
from tests.verifiers import cases, sandbox

CASES = cases.read("asserts.toml")
inside.FRAMEWORKS = sandbox_lib.FRAMEWORKS


def passes(test, solution):
  """Runs a test here, with each call of the solution on a new copy of its names."""
  ((source, own),), _ = _test_forms.read_tests(dict(tests=[test], entry_point="f"))
  def result(call, _):
    names = {}
    exec(solution, names)
    return json.loads(json.dumps(inside.call_steps(names, **json.loads(json.dumps(call)))))
  try:
    return inside.run_test(inside.compile_test(source), inside.Calls(result), own)
  except Exception:
    return False


@pytest.mark.parametrize("case", CASES["passes"], ids=lambda case: case["test"])
def test_a_right_solution_passes(case): assert passes(**case)


@pytest.mark.parametrize("case", CASES["fails"], ids=lambda case: case["test"])
def test_a_wrong_solution_fails(case): assert not passes(**case)


@pytest.mark.parametrize("test, value, is_right", [
    *CASES["values"], (f"assert f() == {hex(7**9000)}", "7 ** 9000", True)], ids=range(
        len(CASES["values"]) + 1))
def test_what_a_function_returns(test, value, is_right):
  assert passes(test, f"def f(): return {value}") == is_right


def prompt(*tests, id="p", **meta):
  return records.Prompt(id, "?", verifier="code_tests.passed", meta=dict(meta, tests=list(tests)))


@sandbox.needed
def test_tests_that_cannot_be_run_are_refused(monkeypatch):
  monkeypatch.setattr(sandbox_lib, "INSIDE", sandbox_lib.INSIDE.replace("PROF, 2.0", "PROF, 0.5"))
  problems = code_tests.inspect([prompt(case["test"]) for case in CASES["refused"]])
  for case, (problem, _) in zip(CASES["refused"], problems, strict=True):
    assert problem.startswith("tests[0] is ") and case["message"] in problem, (case, problem)


@sandbox.needed
def test_a_result_that_makes_a_test_slow_fails_it():
  def check(case):
    start = time.monotonic()
    assert code_tests.fraction(sandbox.prompt([case["test"]], total_s=0.6),
                               f"def f(x): return {case['returned']}") == 0.0, case
    assert time.monotonic() - start < 60, case

  sandbox.at_once(check, CASES["slow"])


@pytest.mark.parametrize("printed", CASES["crafted"])
def test_a_crafted_result_is_no_value(printed):
  with pytest.raises(Exception): inside.decode(json.loads(printed))


@pytest.mark.parametrize("value", [
    None, True, -3, 2**5000, 0.1, -0.0, math.inf, -math.inf, math.nan, 2 - 1j,
    complex(-0.0, math.inf), "a'\n\ud800", b"\0", [], [1, [2]], (), (1,), (1, 2), set(), {1, (2,)},
    frozenset(), frozenset({1}), {}, {"a": {1: None}}, range(2, 9, 3)])
def test_values_are_sent_as_they_are(value):
  again = inside.decode(json.loads(json.dumps(inside.encode(value))))
  assert repr(again) == repr(value) and type(again) is type(value)


@sandbox.needed
def test_constants_that_pass_all_tests_are_described():
  prompts = [prompt(*case["tests"], entry_point="f") for case in CASES["constant"]]
  for case, (problem, constant) in zip(CASES["constant"], code_tests.inspect(prompts)):
    assert problem is None and (constant is None) == (not case["message"]), (case, constant)
    assert case["message"] in (constant or ""), (case, constant)


@sandbox.needed
def test_a_constant_may_be_a_large_number():
  tests = [f"assert f({i}) == {hex(7**9000)}" for i in (1, 2)]
  (_, constant), = code_tests.inspect([prompt(*tests)])
  assert constant.startswith("f that returns ") and len(constant) == 100


def check(prompts, **verifier):
  options = dict(dict(scores=(), by_item=None, default_items=(), max_items=9, judges={},
                      allow_constant=False, unsafe=False), **verifier)
  config = types.SimpleNamespace(verifier=ml_collections.ConfigDict(options))
  build_verifiers.check_prompts(config, prompts)


@sandbox.needed
def test_prompts_that_cannot_be_judged_are_refused_by_their_number():
  rows = [dict(question="?", answer="x", tests=["assert f(1) == 1", "assert f(2) == 2"])
          for _ in range(3)]
  rows[1]["tests"].append("assert f(g(1)) == 2")
  good, *bad = jsonl.prompts(rows, "train", verifier="code_tests.fraction", meta=("tests",))
  check([good])
  message = r"^prompt 'jsonl/train/1': tests\[2\] is 'assert f\(g\(1\)\) == 2': an argument"
  for allow_constant in (False, True):
    with pytest.raises(ValueError, match=message):
      check([good, *bad], allow_constant=allow_constant)
  with pytest.raises(ValueError, match=r"tests\[0\]\['input'\] is 5; a text is allowed"):
    check([prompt(dict(input=5, output=""))])
  with pytest.raises(ValueError, match=r"^prompt 'p': a prompt without tests"): check([prompt()])
  # The same holds if verifier.scores runs the code, not the prompt's own verifier.
  other = records.Prompt("q", "?", answer="1", verifier="math_answer.final")
  check([other])
  with pytest.raises(ValueError, match="^prompt 'q': a prompt without tests"):
    check([other], scores=("code_tests.passed",))


@sandbox.needed
def test_prompts_that_a_constant_passes_are_refused_or_counted():
  prompts = [prompt("assert f(1)", id="a"), prompt("assert f(1) == 5", id="b"),
             prompt("assert f(2)", id="c")]
  with pytest.raises(ValueError, match=r"^prompt 'a': its tests are passed by f that returns True.*"
                     r"verifier.allow_constant=true. \(1 more such prompts\)$"):
    check(prompts)
  check(prompts, allow_constant=True)
